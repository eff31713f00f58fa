// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// Three replicas are asked for the same value, and the first answer is taken. The other two replicas never get rid
// of theirs.
//
// want: leak 2
// always
// cause: channel
package tests

import (
	"testing"
)

type replicaSet struct {
	values []int
}

func (s *replicaSet) read() int {
	answers := make(chan int)
	for i := range s.values {
		go func(i int) {
			answers <- s.values[i]
		}(i)
	}
	return <-answers
}

func TestFirstAnswer(t *testing.T) {
	s := &replicaSet{values: []int{7, 7, 7}}
	if got := s.read(); got != 7 {
		t.Error(got)
	}
}
