// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A worker says that it is finished when its context is cancelled, too. The one who started it waits for either of
// the two: if it takes the cancellation first, nobody hears the worker.
//
// want: leak 1
// sometimes
// cause: channel & context
package tests

import (
	"context"
	"testing"
)

type scan struct {
	found    chan int
	finished chan int
}

func (s *scan) run(ctx context.Context) {
	n := 0
	for ; ; n++ {
		select {
		case s.found <- n:
			continue
		case <-ctx.Done():
		}
		break
	}
	s.finished <- n
}

func TestCancelOrFinish(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &scan{found: make(chan int), finished: make(chan int)}
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
