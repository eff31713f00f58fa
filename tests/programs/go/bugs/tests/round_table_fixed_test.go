// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As round_table_buggy, but the last one takes the forks the other way round.
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
		if i == len(forks)-1 {
			p.left, p.right = p.right, p.left
		}
		done.Add(1)
		go p.dine(&done)
	}
	done.Wait()
}
