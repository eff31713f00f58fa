// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build cgo

package main

// void call(int times);
import "C"

var fromC chan int

//export called
func called(number C.int) {
	sends.count()
	fromC <- int(number)
}

// A channel that is used in calls from Go to C and back.
func throughC() {
	makes.count()
	fromC = make(chan int, rounds)
	C.call(rounds)
	for i := 0; i < rounds; i++ {
		receives.count()
		<-fromC
	}
}
