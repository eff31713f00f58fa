// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// The main goroutine waits for a worker that has ended without saying so. The runtime does not notice, because a
// handler of signals is installed.
//
// want: global-deadlock unnoticed
// always
// cause: channel
package main

import (
	"os"
	"os/signal"
)

type copyJob struct {
	pages int
	done  chan struct{}
}

func (j *copyJob) run() {
	for page := 0; page < j.pages; page++ {
		if page == 7 {
			return // the rest is empty
		}
	}
	close(j.done)
}

func signalHandler() {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	job := &copyJob{pages: 10, done: make(chan struct{})}
	go job.run()
	<-job.done
	select {
	case <-interrupts:
		println("interrupted")
	default:
	}
}

func init() { programs["signal_handler"] = signalHandler }
