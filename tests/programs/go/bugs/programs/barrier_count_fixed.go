// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As barrier_count_buggy, but the barrier counts those that take part.
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
	parties := 0
	for _, part := range parts {
		if len(part) > 0 {
			parties++
		}
	}
	b := newBarrier(parties)
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
