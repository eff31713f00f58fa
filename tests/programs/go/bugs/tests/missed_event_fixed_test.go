// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As missed_event_buggy, but the listener is there before the state is read.
package tests

import (
	"sync"
	"testing"
)

type resource struct {
	mu        sync.Mutex
	ready     bool
	listeners []chan bool
}

func (r *resource) isReady() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ready
}

func (r *resource) subscribe() <-chan bool {
	listener := make(chan bool, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listeners = append(r.listeners, listener)
	return listener
}

func (r *resource) change() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ready = true
	for _, listener := range r.listeners {
		listener <- true
	}
}

func (r *resource) await() {
	changes := r.subscribe()
	if r.isReady() {
		return
	}
	<-changes
}

func TestMissedEvent(t *testing.T) {
	r := &resource{}
	var changed sync.WaitGroup
	changed.Add(1)
	go func() {
		defer changed.Done()
		r.change()
	}()
	r.await()
	changed.Wait()
}

func TestReadyBefore(t *testing.T) {
	r := &resource{}
	r.change()
	r.await()
}
