// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As child_first_buggy, but the helper is told to stop in any case.
package main

import "sync/atomic"

var helperUp atomic.Bool

func childFirst() {
	stop, done, stopped := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		go func() {
			helperUp.Store(true)
			<-stop
			close(stopped)
		}()
		if !helperUp.Load() {
			println("not up yet")
		}
		close(stop)
		close(done)
	}()
	<-done
	<-stopped
}

func init() { programs["child_first"] = childFirst }
