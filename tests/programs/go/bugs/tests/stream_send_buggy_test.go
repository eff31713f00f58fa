// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A stream looks at its context before it sends an item, but not while it does: when the receiver goes away
// between the look and the send, the sender waits for ever.
//
// want: leak 1
// sometimes
// cause: channel & context
package tests

import (
	"context"
	"testing"
)

type stream struct {
	items chan int
}

func (s *stream) send(ctx context.Context, item int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.items <- item
	return nil
}

func (s *stream) receive(cancel context.CancelFunc, n int) int {
	defer cancel()
	sum := 0
	for i := 0; i < n; i++ {
		sum += <-s.items
	}
	return sum
}

func TestStreamSend(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &stream{items: make(chan int, 1)}
	go func() {
		for item := 1; s.send(ctx, item) == nil; item++ {
		}
	}()
	if got := s.receive(cancel, 4); got != 10 {
		t.Error(got)
	}
}
