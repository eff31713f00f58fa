// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A function unlocks on its early return although a deferred call does so, too.
//
// want: crash
// always
// cause: double locking
package main

import "sync"

type pool struct {
	mu   sync.Mutex
	free []int
}

func (p *pool) take() (int, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		p.mu.Unlock()
		return 0, false
	}
	last := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	return last, true
}

func doubleUnlock() {
	p := &pool{free: []int{1}}
	var users sync.WaitGroup
	for i := 0; i < 2; i++ {
		users.Add(1)
		go func() {
			defer users.Done()
			p.take()
		}()
	}
	users.Wait()
}

func init() { programs["double_unlock"] = doubleUnlock }
