// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As read_to_write_buggy, but what was missing is added after the read lock is given back.
package tests

import (
	"sync"
	"testing"
)

type quota struct {
	mu    sync.RWMutex
	users map[string]int
	asks  sync.WaitGroup
}

func (q *quota) add(user string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.users[user] = 100
}

func (q *quota) of(user string) int {
	q.mu.RLock()
	left, known := q.users[user]
	q.mu.RUnlock()
	if !known {
		q.add(user)
		left = 100
	}
	return left
}

func TestKnownUser(t *testing.T) {
	q := &quota{users: map[string]int{"ann": 7}}
	if got := q.of("ann"); got != 7 {
		t.Error(got)
	}
}

func TestReadToWrite(t *testing.T) {
	q := &quota{users: map[string]int{}}
	asked := make(chan string)
	q.asks.Add(1)
	go func() {
		defer q.asks.Done()
		for user := range asked {
			q.of(user)
		}
	}()
	asked <- "bob"
	close(asked)
	q.asks.Wait()
}
