// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As quote_timeout_buggy, but the channel has room for the late answer, and the end is waited for.
package main

import (
	"sync"
	"time"
)

type quoteService struct {
	delay    time.Duration
	backends sync.WaitGroup
}

func (s *quoteService) ask(symbol string) (int, bool) {
	answer := make(chan int, 1)
	s.backends.Add(1)
	go func() {
		defer s.backends.Done()
		time.Sleep(s.delay)
		answer <- len(symbol) * 100
	}()
	select {
	case price := <-answer:
		return price, true
	case <-time.After(s.delay / 4):
		return 0, false
	}
}

func quoteTimeout() {
	service := &quoteService{delay: 2 * time.Millisecond}
	service.ask("ACME")
	service.backends.Wait()
}

func init() { programs["quote_timeout"] = quoteTimeout }
