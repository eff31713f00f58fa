// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// A function and a source file whose names would do something to a terminal; a leak and two locks in both orders.
// NAME and FILE stand for them: an editor would not show what they are.
package main

import (
	"sync"
	"time"
	_ "unsafe"
)

var first, second sync.Mutex

//line /x/FILE.go:10
func one() { first.Lock(); second.Lock(); second.Unlock(); first.Unlock() }
func two() { second.Lock(); first.Lock(); first.Unlock(); second.Unlock() }

func main() {
	values := make(chan int)
	go send(values)
	go send(values)
	<-values
	one()
	var done sync.WaitGroup
	done.Add(1)
	go func() { defer done.Done(); two() }()
	done.Wait()
	time.Sleep(20 * time.Millisecond)
}

//go:linkname send NAME
//go:noinline
func send(values chan int) { values <- 1 }
