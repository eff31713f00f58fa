// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A publisher holds the lock of the list of subscribers while it sends. A subscriber that has heard enough takes
// the lock to leave the list: if the publisher is in its next send already, neither gets on.
//
// want: leak 2
// sometimes
// cause: channel & lock
package main

import (
	"sync"
	"time"
)

type topic struct {
	mu   sync.Mutex
	subs map[int]chan string
}

func (t *topic) publish(message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, sub := range t.subs {
		sub <- message
	}
}

func (t *topic) leave(id int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.subs, id)
}

func publishLocked() {
	t := &topic{subs: map[int]chan string{1: make(chan string)}}
	done := make(chan struct{}, 2)
	go func() {
		t.publish("one")
		t.publish("two")
		done <- struct{}{}
	}()
	sub := t.subs[1]
	go func() {
		<-sub
		t.leave(1)
		done <- struct{}{}
	}()
	select {
	case <-done:
		<-done
	case <-time.After(10 * time.Millisecond):
	}
}

func init() { programs["publish_locked"] = publishLocked }
