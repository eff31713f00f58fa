// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As signal_one_buggy, but all are woken, and waited for.
package tests

import (
	"runtime"
	"sync"
	"testing"
)

type gate struct {
	mu      sync.Mutex
	opened  *sync.Cond
	open    bool
	waiting int
	passed  sync.WaitGroup
}

func (g *gate) pass() {
	defer g.passed.Done()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting++
	for !g.open {
		g.opened.Wait()
	}
	g.waiting--
}

func (g *gate) waits() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting
}

func TestSignalOne(t *testing.T) {
	g := &gate{}
	g.opened = sync.NewCond(&g.mu)
	g.passed.Add(3)
	for i := 0; i < 3; i++ {
		go g.pass()
	}
	for g.waits() < 3 {
		runtime.Gosched()
	}
	g.mu.Lock()
	g.open = true
	g.opened.Broadcast()
	g.mu.Unlock()
	g.passed.Wait()
}
