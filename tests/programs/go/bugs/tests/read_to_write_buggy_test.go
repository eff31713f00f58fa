// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A function that holds the read lock finds something missing and takes the write lock to add it, which waits for
// all readers: for itself.
//
// want: leak 1
// always
// cause: double locking
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
	defer q.mu.RUnlock()
	if _, known := q.users[user]; !known {
		q.add(user)
	}
	return q.users[user]
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
	go func() {
		for user := range asked {
			q.of(user)
		}
	}()
	asked <- "bob"
	close(asked)
}
