// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A producer waits on a condition variable for room in a box. The consumer takes nothing out before the producer
// has told over a channel that it is finished.
//
// want: global-deadlock
// always
// cause: channel & condition variable
package main

import "sync"

type box struct {
	mu      sync.Mutex
	changed *sync.Cond
	items   []int
	room    int
}

func (b *box) put(item int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.items) == b.room {
		b.changed.Wait()
	}
	b.items = append(b.items, item)
	b.changed.Broadcast()
}

func (b *box) take() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.items) == 0 {
		b.changed.Wait()
	}
	item := b.items[0]
	b.items = b.items[1:]
	b.changed.Broadcast()
	return item
}

func waitUntilFull() {
	b := &box{room: 2}
	b.changed = sync.NewCond(&b.mu)
	finished := make(chan int, 1)
	go func() {
		for item := 0; item < 3; item++ {
			b.put(item)
		}
		finished <- 3
	}()
	for n := <-finished; n > 0; n-- {
		b.take()
	}
}

func init() { programs["wait_until_full"] = waitUntilFull }
