// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// Three shards are written to at the same time. The channel of their errors has room for one, and only the first
// error is read: of two others one finds room, the last waits for ever.
//
// want: leak 1
// always
// cause: channel
package tests

import (
	"errors"
	"testing"
)

func writeShards(n int) error {
	failures := make(chan error, 1)
	for shard := 0; shard < n; shard++ {
		go func() {
			failures <- errors.New("disk full")
		}()
	}
	return <-failures
}

func TestErrorFanout(t *testing.T) {
	if writeShards(3) == nil {
		t.Error("no failure")
	}
}
