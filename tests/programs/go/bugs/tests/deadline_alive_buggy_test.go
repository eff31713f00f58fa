// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A query is waited for with a deadline of a minute, in a goroutine that forgets to close its rows. The runtime
// does not notice that nothing happens any more, because of the timer of the deadline.
//
// want: global-deadlock unnoticed
// always
// cause: channel & context
package tests

import (
	"context"
	"testing"
	"time"
)

type cursor struct {
	rows chan int
}

func (c *cursor) fetch(ctx context.Context, n int) {
	for row := 0; row < n; row++ {
		select {
		case c.rows <- row:
		case <-ctx.Done():
			return
		}
	}
}

func TestDeadlineAlive(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := &cursor{rows: make(chan int)}
	go c.fetch(ctx, 4)
	n := 0
	for range c.rows {
		n++
	}
	if n != 4 {
		t.Error(n)
	}
}
