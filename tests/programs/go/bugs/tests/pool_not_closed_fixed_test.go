// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As pool_not_closed_buggy, but the jobs are closed and the workers waited for.
package tests

import (
	"sync"
	"testing"
)

type resizePool struct {
	jobs    chan int
	results chan int
	workers sync.WaitGroup
}

func newResizePool(workers int) *resizePool {
	p := &resizePool{jobs: make(chan int), results: make(chan int)}
	p.workers.Add(workers)
	for i := 0; i < workers; i++ {
		go func() {
			defer p.workers.Done()
			for job := range p.jobs {
				p.results <- job / 2
			}
		}()
	}
	return p
}

func TestPoolNotClosed(t *testing.T) {
	p := newResizePool(3)
	defer p.workers.Wait()
	defer close(p.jobs)
	for i := 0; i < 6; i++ {
		p.jobs <- i
		if got := <-p.results; got != i/2 {
			t.Errorf("%d: %d", i, got)
		}
	}
}
