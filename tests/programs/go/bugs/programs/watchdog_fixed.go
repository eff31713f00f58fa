// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As watchdog_buggy, but the answer is sent without the lock.
package main

import (
	"sync"
	"time"
)

type slowJob struct {
	mu     sync.Mutex
	state  string
	answer chan int
	began  chan struct{}
}

func (j *slowJob) run() {
	j.mu.Lock()
	j.state = "answering"
	j.mu.Unlock()
	close(j.began)
	j.answer <- 42
}

func (j *slowJob) status() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state
}

func watchdog() {
	late := time.AfterFunc(time.Minute, func() { println("no answer in a minute") })
	defer late.Stop()
	j := &slowJob{answer: make(chan int), began: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		j.run()
		close(ended)
	}()
	<-j.began
	if j.status() == "answering" {
		<-j.answer
	}
	<-ended
}

func init() { programs["watchdog"] = watchdog }
