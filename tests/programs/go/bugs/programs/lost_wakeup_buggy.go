// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// The start of a service waits on a condition variable for the signal of the loader. When the loader is quicker,
// the signal comes before the wait, and is lost.
//
// want: global-deadlock
// sometimes
// cause: condition variable
package main

import "sync"

type loader struct {
	mu     sync.Mutex
	ready  *sync.Cond
	config map[string]string
}

func (l *loader) load() {
	l.mu.Lock()
	l.config = map[string]string{"listen": "localhost"}
	l.mu.Unlock()
	l.ready.Broadcast()
}

func (l *loader) wait() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready.Wait()
	return l.config["listen"]
}

func lostWakeup() {
	l := &loader{}
	l.ready = sync.NewCond(&l.mu)
	go l.load()
	l.wait()
}

func init() { programs["lost_wakeup"] = lostWakeup }
