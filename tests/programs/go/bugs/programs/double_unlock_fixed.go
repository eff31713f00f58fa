// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As double_unlock_buggy, but only the deferred call unlocks.
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
