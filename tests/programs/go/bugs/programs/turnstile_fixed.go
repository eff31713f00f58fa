// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As turnstile_buggy, but all doors are opened before the guard waits for anybody.
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
		v := &visitor{left: make(chan struct{})}
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
	}
	for _, v := range visitors {
		<-v.left
	}
}

func init() { programs["turnstile"] = turnstile }
