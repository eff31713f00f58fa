// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// Three philosophers take the fork at their left, then the one at their right. When all have the left one, nobody
// gets the right one.
//
// want: global-deadlock
// sometimes
// cause: AB-BA
package tests

import (
	"sync"
	"testing"
)

type philosopher struct {
	left, right *sync.Mutex
	meals       int
}

func (p *philosopher) dine(done *sync.WaitGroup) {
	defer done.Done()
	p.left.Lock()
	defer p.left.Unlock()
	p.right.Lock()
	defer p.right.Unlock()
	p.meals++
}

func TestRoundTable(t *testing.T) {
	forks := make([]sync.Mutex, 3)
	var done sync.WaitGroup
	for i := range forks {
		p := &philosopher{left: &forks[i], right: &forks[(i+1)%len(forks)]}
		done.Add(1)
		go p.dine(&done)
	}
	done.Wait()
}
