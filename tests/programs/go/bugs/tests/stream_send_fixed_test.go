// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As stream_send_buggy, but the send itself is given up with the context.
package tests

import (
	"context"
	"sync"
	"testing"
)

type stream struct {
	items chan int
}

func (s *stream) send(ctx context.Context, item int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.items <- item:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
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
	var sender sync.WaitGroup
	sender.Add(1)
	defer sender.Wait()
	go func() {
		defer sender.Done()
		for item := 1; s.send(ctx, item) == nil; item++ {
		}
	}()
	if got := s.receive(cancel, 4); got != 10 {
		t.Error(got)
	}
}
