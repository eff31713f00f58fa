// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// Three goroutines wait for a gate to open. It opens for all, but only one of them is woken.
//
// want: leak 2
// always
// cause: condition variable
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
}

func (g *gate) pass() {
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
	for i := 0; i < 3; i++ {
		go g.pass()
	}
	for g.waits() < 3 {
		runtime.Gosched()
	}
	g.mu.Lock()
	g.open = true
	g.opened.Signal()
	g.mu.Unlock()
}
