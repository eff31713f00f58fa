// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As lost_wakeup_buggy, but what is waited for is a variable, not the signal.
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
	for l.config == nil {
		l.ready.Wait()
	}
	return l.config["listen"]
}

func lostWakeup() {
	l := &loader{}
	l.ready = sync.NewCond(&l.mu)
	loaded := make(chan struct{})
	go func() {
		l.load()
		close(loaded)
	}()
	l.wait()
	<-loaded
}

func init() { programs["lost_wakeup"] = lostWakeup }
