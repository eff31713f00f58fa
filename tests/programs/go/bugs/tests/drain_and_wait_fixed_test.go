// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As drain_and_wait_buggy, but a send is given up when the consumer has left.
package tests

import (
	"sync"
	"testing"
)

type spool struct {
	pages     chan int
	stop      chan struct{}
	producers sync.WaitGroup
	printed   int
}

func (s *spool) print() {
	for {
		select {
		case <-s.pages:
			s.printed++
		case <-s.stop:
			return
		}
	}
}

func (s *spool) feed(n int) {
	defer s.producers.Done()
	for page := 0; page < n; page++ {
		select {
		case s.pages <- page:
		case <-s.stop:
			return
		}
	}
}

func TestDrainAndWait(t *testing.T) {
	s := &spool{pages: make(chan int), stop: make(chan struct{})}
	printer := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(printer)
		s.print()
	}()
	s.producers.Add(1)
	go s.feed(3)
	go func() {
		defer close(ended)
		s.producers.Wait()
	}()
	close(s.stop)
	<-printer
	<-ended
	if s.printed > 3 {
		t.Error(s.printed)
	}
}
