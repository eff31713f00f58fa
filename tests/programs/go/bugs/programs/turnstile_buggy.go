// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A turnstile lets one visitor in at a time, who stays until the guard opens the door that is the visitor's. The guard
// opens them in the order in which the visitors were announced, which need not be that in which they came in.
//
// want: global-deadlock
// sometimes
// cause: channel & lock
package main

import "sync"

type visitor struct {
	door sync.Mutex
	left chan struct{}
}

func turnstile() {
	inside := make(chan struct{}, 1)
	visitors := make([]*visitor, 2)
	for i := range visitors {
		v := &visitor{left: make(chan struct{}, 1)}
		visitors[i] = v
		v.door.Lock()
		announced := make(chan struct{})
		go func() {
			close(announced)
			inside <- struct{}{}
			v.door.Lock()
			v.door.Unlock()
			<-inside
			v.left <- struct{}{}
		}()
		<-announced
	}
	for _, v := range visitors {
		v.door.Unlock()
		<-v.left
	}
}

func init() { programs["turnstile"] = turnstile }
