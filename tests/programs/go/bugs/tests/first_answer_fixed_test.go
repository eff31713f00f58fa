// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As first_answer_buggy, but the channel has room for all answers, and they are waited for.
package tests

import (
	"sync"
	"testing"
)

type replicaSet struct {
	values []int
	asked  sync.WaitGroup
}

func (s *replicaSet) read() int {
	answers := make(chan int, len(s.values))
	for i := range s.values {
		s.asked.Add(1)
		go func(i int) {
			defer s.asked.Done()
			answers <- s.values[i]
		}(i)
	}
	return <-answers
}

func TestFirstAnswer(t *testing.T) {
	s := &replicaSet{values: []int{7, 7, 7}}
	defer s.asked.Wait()
	if got := s.read(); got != 7 {
		t.Error(got)
	}
}
