// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// The workers of a pool take jobs until their channel is closed. All results are there, and nobody closes it.
//
// want: leak 3
// always
// cause: channel
package tests

import (
	"testing"
)

type resizePool struct {
	jobs    chan int
	results chan int
}

func newResizePool(workers int) *resizePool {
	p := &resizePool{jobs: make(chan int), results: make(chan int)}
	for i := 0; i < workers; i++ {
		go func() {
			for job := range p.jobs {
				p.results <- job / 2
			}
		}()
	}
	return p
}

func TestPoolNotClosed(t *testing.T) {
	p := newResizePool(3)
	for i := 0; i < 6; i++ {
		p.jobs <- i
		if got := <-p.results; got != i/2 {
			t.Errorf("%d: %d", i, got)
		}
	}
}
