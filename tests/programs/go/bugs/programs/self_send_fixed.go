// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As self_send_buggy, but the sender is a goroutine.
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
	go queue.work(done)
	queue <- func() {}
	close(queue)
	<-done
}

func init() { programs["self_send"] = selfSend }
