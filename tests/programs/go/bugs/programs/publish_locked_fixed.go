// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As publish_locked_buggy, but a copy of the list is sent to without the lock.
package main

import (
	"sync"
)

type topic struct {
	mu   sync.Mutex
	subs map[int]chan string
	gone chan struct{}
}

func (t *topic) publish(message string) {
	t.mu.Lock()
	subs := make([]chan string, 0, len(t.subs))
	for _, sub := range t.subs {
		subs = append(subs, sub)
	}
	t.mu.Unlock()
	for _, sub := range subs {
		select {
		case sub <- message:
		case <-t.gone:
		}
	}
}

func (t *topic) leave(id int) {
	close(t.gone)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.subs, id)
}

func publishLocked() {
	t := &topic{subs: map[int]chan string{1: make(chan string)}}
	t.gone = make(chan struct{})
	var both sync.WaitGroup
	both.Add(2)
	go func() {
		defer both.Done()
		t.publish("one")
		t.publish("two")
	}()
	sub := t.subs[1]
	go func() {
		defer both.Done()
		<-sub
		t.leave(1)
	}()
	both.Wait()
}

func init() { programs["publish_locked"] = publishLocked }
