// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As nil_channel_buggy, but the channel is made in any case.
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
	f.alerts = make(chan string, 4)
	f.served.Add(1)
	go func() {
		defer f.served.Done()
		for range f.news {
		}
	}()
	f.served.Add(1)
	go func() {
		defer f.served.Done()
		for range f.alerts {
		}
	}()
	return f
}

func nilChannel() {
	f := newFeed(feedOptions{})
	f.news <- "started"
	close(f.news)
	close(f.alerts)
	f.served.Wait()
}

func init() { programs["nil_channel"] = nilChannel }
