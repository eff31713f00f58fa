// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As sync_reply_buggy, but the reply is awaited without the lock.
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
	s.dirty = append(s.dirty, page)
	enough := len(s.dirty) >= 2
	s.mu.Unlock()
	if !enough {
		return 0
	}
	reply := make(chan int)
	s.flushes <- reply
	return <-reply
}

func syncReply() {
	s := &diskStore{flushes: make(chan chan int)}
	ended := make(chan struct{})
	go func() {
		s.writer()
		close(ended)
	}()
	s.put("a")
	s.put("b")
	close(s.flushes)
	<-ended
}

func init() { programs["sync_reply"] = syncReply }
