// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A store asks its writer to flush and waits for the reply with its lock held. The writer needs the lock to see
// what it has to write.
//
// want: global-deadlock
// always
// cause: channel & lock
package main

import "sync"

type diskStore struct {
	mu      sync.Mutex
	dirty   []string
	flushes chan chan int
}

func (s *diskStore) writer() {
	for reply := range s.flushes {
		s.mu.Lock()
		n := len(s.dirty)
		s.dirty = nil
		s.mu.Unlock()
		reply <- n
	}
}

func (s *diskStore) put(page string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirty = append(s.dirty, page)
	if len(s.dirty) < 2 {
		return 0
	}
	reply := make(chan int)
	s.flushes <- reply
	return <-reply
}

func syncReply() {
	s := &diskStore{flushes: make(chan chan int)}
	go s.writer()
	s.put("a")
	s.put("b")
	close(s.flushes)
}

func init() { programs["sync_reply"] = syncReply }
