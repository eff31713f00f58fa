// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As request_after_stop_buggy, but a request is given up when the server has stopped.
package main

import "sync"

type counterServer struct {
	requests chan chan int
	stop     chan struct{}
	stopped  chan struct{}
}

func (s *counterServer) serve() {
	defer close(s.stopped)
	for n := 0; ; n++ {
		select {
		case reply := <-s.requests:
			reply <- n
		case <-s.stop:
			return
		}
	}
}

func (s *counterServer) next() int {
	reply := make(chan int, 1)
	select {
	case s.requests <- reply:
		return <-reply
	case <-s.stopped:
		return -1
	}
}

func requestAfterStop() {
	s := &counterServer{requests: make(chan chan int), stop: make(chan struct{}), stopped: make(chan struct{})}
	go s.serve()
	var clients sync.WaitGroup
	for i := 0; i < 2; i++ {
		clients.Add(1)
		go func() {
			defer clients.Done()
			s.next()
		}()
	}
	clients.Wait()
	clients.Add(1)
	go func() {
		defer clients.Done()
		s.next()
	}()
	close(s.stop)
	<-s.stopped
	clients.Wait()
}

func init() { programs["request_after_stop"] = requestAfterStop }
