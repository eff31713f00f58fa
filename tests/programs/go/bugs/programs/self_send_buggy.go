// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// The first task is put into an unbuffered queue before anybody who takes tasks has been started.
//
// want: global-deadlock
// always
// cause: channel
package main

type taskQueue chan func()

func (q taskQueue) work(done chan<- int) {
	n := 0
	for task := range q {
		task()
		n++
	}
	done <- n
}

func selfSend() {
	queue := make(taskQueue)
	done := make(chan int, 1)
	queue <- func() {}
	go queue.work(done)
	close(queue)
	<-done
}

func init() { programs["self_send"] = selfSend }
