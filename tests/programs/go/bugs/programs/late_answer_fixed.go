// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As late_answer_buggy, but there is room for an answer that nobody waits for.
package main

import "time"

func lateAnswer() {
	answer, delivered := make(chan int, 1), make(chan struct{})
	go func() {
		answer <- 42
		close(delivered)
	}()
	timeout := time.NewTimer(10 * time.Millisecond)
	defer timeout.Stop()
	select {
	case <-answer:
	case <-timeout.C:
	}
	<-delivered
}

func init() { programs["late_answer"] = lateAnswer }
