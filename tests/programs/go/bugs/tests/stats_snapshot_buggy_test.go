// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// Statistics are printed under the read lock by a method that takes it again. The test waits for the printer and
// for the counter, which may write between the two.
//
// want: global-deadlock
// sometimes
// cause: RWR
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
	s.mu.RLock()
	defer s.mu.RUnlock()
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
