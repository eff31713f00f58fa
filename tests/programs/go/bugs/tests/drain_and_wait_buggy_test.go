// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A consumer leaves when it is told to stop. A producer that is in its send by then stays there, and so does
// whoever waits for the producer.
//
// want: leak 2
// sometimes
// cause: channel & wait group
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
		s.pages <- page
	}
}

func TestDrainAndWait(t *testing.T) {
	s := &spool{pages: make(chan int), stop: make(chan struct{})}
	printer := make(chan struct{})
	go func() {
		defer close(printer)
		s.print()
	}()
	s.producers.Add(1)
	go s.feed(3)
	go func() {
		s.producers.Wait()
	}()
	close(s.stop)
	<-printer
	if s.printed > 3 {
		t.Error(s.printed)
	}
}
