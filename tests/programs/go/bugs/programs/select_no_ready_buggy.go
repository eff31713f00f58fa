// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// An event loop waits for input or for the end, but both of its sources end without saying so: no case of its
// select will ever be ready.
//
// want: leak 1
// always
// cause: channel
package main

import "sync"

type eventLoop struct {
	keys, clicks chan int
	quit         chan struct{}
	sources      sync.WaitGroup
}

func (l *eventLoop) run() {
	handled := 0
	for {
		select {
		case <-l.keys:
			handled++
		case <-l.clicks:
			handled++
		case <-l.quit:
			return
		}
	}
}

func (l *eventLoop) source(events chan<- int) {
	defer l.sources.Done()
	for i := 0; i < 3; i++ {
		events <- i
	}
}

func selectNoReady() {
	loop := &eventLoop{keys: make(chan int), clicks: make(chan int), quit: make(chan struct{})}
	loop.sources.Add(2)
	go loop.run()
	go loop.source(loop.keys)
	go loop.source(loop.clicks)
	loop.sources.Wait()
}

func init() { programs["select_no_ready"] = selectNoReady }
