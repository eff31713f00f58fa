// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A server handles one request after the other until it is told to stop. A client whose request comes just after
// that waits for a server that is no longer there.
//
// want: leak 1
// sometimes
// cause: channel
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
	s.requests <- reply
	return <-reply
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
	go func() {
		s.next()
	}()
	close(s.stop)
	<-s.stopped
}

func init() { programs["request_after_stop"] = requestAfterStop }
