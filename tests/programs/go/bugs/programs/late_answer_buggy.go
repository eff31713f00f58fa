// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A client waits for an answer for ten milliseconds. The server, which mostly needs a few microseconds, cannot deliver a
// later one.
//
// want: leak 1
// sometimes
// cause: channel & timer
package main

import "time"

func lateAnswer() {
	answer := make(chan int)
	go func() { answer <- 42 }()
	timeout := time.NewTimer(10 * time.Millisecond)
	defer timeout.Stop()
	select {
	case <-answer:
	case <-timeout.C:
	}
}

func init() { programs["late_answer"] = lateAnswer }
