// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A starter looks whether its helper has come up by itself, in a variable, right behind the go statement. It tells the
// helper to stop only when it has not. When the helper is quicker, nobody ever does.
//
// want: leak 1
// sometimes
// cause: channel
package main

var helperUp bool

func childFirst() {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		go func() {
			helperUp = true
			<-stop
		}()
		if !helperUp {
			close(stop)
		}
		close(done)
	}()
	<-done
}

func init() { programs["child_first"] = childFirst }
