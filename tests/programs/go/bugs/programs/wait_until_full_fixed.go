// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As wait_until_full_buggy, but what is produced is taken first.
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
	for n := 3; n > 0; n-- {
		b.take()
	}
	<-finished
}

func init() { programs["wait_until_full"] = waitUntilFull }
