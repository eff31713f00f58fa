// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A barrier is made for all parts of a job. A part that has nothing to do is not started, and the others wait at
// the barrier for it.
//
// want: global-deadlock
// always
// cause: condition variable
package main

import "sync"

type barrier struct {
	mu      sync.Mutex
	reached *sync.Cond
	missing int
}

func newBarrier(parties int) *barrier {
	b := &barrier{missing: parties}
	b.reached = sync.NewCond(&b.mu)
	return b
}

func (b *barrier) await() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.missing--
	b.reached.Broadcast()
	for b.missing > 0 {
		b.reached.Wait()
	}
}

func barrierCount() {
	parts := [][]int{{1, 2}, {}, {3}}
	b := newBarrier(len(parts))
	var started sync.WaitGroup
	for _, part := range parts {
		if len(part) == 0 {
			continue
		}
		started.Add(1)
		go func() {
			defer started.Done()
			b.await()
		}()
	}
	started.Wait()
}

func init() { programs["barrier_count"] = barrierCount }
