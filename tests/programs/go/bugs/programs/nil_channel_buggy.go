// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A feature that is switched off leaves its channel nil, and the goroutine that serves it receives from nothing.
//
// want: leak 1
// always
// cause: channel
package main

import "sync"

type feedOptions struct {
	alerts bool
}

type feed struct {
	news, alerts chan string
	served       sync.WaitGroup
}

func newFeed(options feedOptions) *feed {
	f := &feed{news: make(chan string, 4)}
	if options.alerts {
		f.alerts = make(chan string, 4)
	}
	f.served.Add(1)
	go func() {
		defer f.served.Done()
		for range f.news {
		}
	}()
	go func() {
		for range f.alerts {
		}
	}()
	return f
}

func nilChannel() {
	f := newFeed(feedOptions{})
	f.news <- "started"
	close(f.news)
	if f.alerts != nil {
		close(f.alerts)
	}
	f.served.Wait()
}

func init() { programs["nil_channel"] = nilChannel }
