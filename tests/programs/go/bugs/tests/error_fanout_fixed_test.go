// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As error_fanout_buggy, but every shard's error has room, and the shards are waited for.
package tests

import (
	"errors"
	"sync"
	"testing"
)

func writeShards(n int) error {
	failures := make(chan error, n)
	var writers sync.WaitGroup
	writers.Add(n)
	for shard := 0; shard < n; shard++ {
		go func() {
			defer writers.Done()
			failures <- errors.New("disk full")
		}()
	}
	writers.Wait()
	return <-failures
}

func TestErrorFanout(t *testing.T) {
	if writeShards(3) == nil {
		t.Error("no failure")
	}
}
