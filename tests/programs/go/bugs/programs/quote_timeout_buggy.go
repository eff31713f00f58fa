// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A price is asked of a slow backend. The caller gives up after a while, nobody is left to take the answer, and
// the backend's goroutine waits with it for ever.
//
// want: leak 1
// always
// cause: channel
package main

import "time"

type quoteService struct {
	delay time.Duration
}

func (s *quoteService) ask(symbol string) (int, bool) {
	answer := make(chan int)
	go func() {
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
	time.Sleep(3 * service.delay) // other requests are served meanwhile
}

func init() { programs["quote_timeout"] = quoteTimeout }
