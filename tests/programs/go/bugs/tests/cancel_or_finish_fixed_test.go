// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As cancel_or_finish_buggy, but the last word is said to whoever still listens.
package tests

import (
	"context"
	"sync"
	"testing"
)

type scan struct {
	found    chan int
	finished chan int
	worker   sync.WaitGroup
}

func (s *scan) run(ctx context.Context) {
	defer s.worker.Done()
	n := 0
	for ; ; n++ {
		select {
		case s.found <- n:
			continue
		case <-ctx.Done():
		}
		break
	}
	select {
	case s.finished <- n:
	default:
	}
}

func TestCancelOrFinish(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &scan{found: make(chan int), finished: make(chan int)}
	s.worker.Add(1)
	defer s.worker.Wait()
	go s.run(ctx)
	if got := <-s.found; got != 0 {
		t.Error(got)
	}
	cancel()
	select {
	case <-s.finished:
	case <-ctx.Done():
	}
}
