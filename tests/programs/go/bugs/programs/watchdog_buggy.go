// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// The main goroutine waits for the lock of a job whose owner waits for the main goroutine to take its answer. The
// runtime does not notice, because a timer runs that would complain in a minute.
//
// want: global-deadlock unnoticed
// always
// cause: channel & lock
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
	defer j.mu.Unlock()
	j.state = "answering"
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
	go j.run()
	<-j.began
	if j.status() == "answering" {
		<-j.answer
	}
}

func init() { programs["watchdog"] = watchdog }
