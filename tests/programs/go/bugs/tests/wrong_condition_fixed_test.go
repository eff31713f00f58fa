// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As wrong_condition_buggy, but who takes is told that the buffer is filled.
package tests

import (
	"runtime"
	"sync"
	"testing"
)

type ring struct {
	mu           sync.Mutex
	filled, room *sync.Cond
	items        []int
	getters      int
}

func newRing() *ring {
	r := &ring{}
	r.filled, r.room = sync.NewCond(&r.mu), sync.NewCond(&r.mu)
	return r
}

func (r *ring) get() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.getters++
	for len(r.items) == 0 {
		r.filled.Wait()
	}
	item := r.items[0]
	r.items = r.items[1:]
	r.room.Signal()
	return item
}

func (r *ring) put(item int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.items) == 4 {
		r.room.Wait()
	}
	r.items = append(r.items, item)
	r.filled.Signal()
}

func (r *ring) someoneGets() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.getters > 0
}

func TestWrongCondition(t *testing.T) {
	r := newRing()
	var getter sync.WaitGroup
	getter.Add(1)
	defer getter.Wait()
	go func() {
		defer getter.Done()
		if got := r.get(); got != 5 {
			t.Error(got)
		}
	}()
	for !r.someoneGets() {
		runtime.Gosched()
	}
	r.put(5)
}
