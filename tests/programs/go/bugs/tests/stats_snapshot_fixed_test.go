// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As stats_snapshot_buggy, but the total is counted without the lock.
package tests

import (
	"fmt"
	"sync"
	"testing"
)

type stats struct {
	mu     sync.RWMutex
	counts [4]int
}

func (s *stats) total() int {
	sum := 0
	for _, n := range s.counts {
		sum += n
	}
	return sum
}

func (s *stats) String() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	text := fmt.Sprint(s.counts[:])
	return fmt.Sprint(text, s.total())
}

func (s *stats) count(kind int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[kind]++
}

func TestStatsSnapshot(t *testing.T) {
	s := &stats{}
	var both sync.WaitGroup
	both.Add(2)
	go func() {
		defer both.Done()
		_ = s.String()
	}()
	go func() {
		defer both.Done()
		for kind := range s.counts {
			s.count(kind)
		}
	}()
	both.Wait()
}
