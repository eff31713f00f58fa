// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As ticker_loop_buggy, but the loop has an end, which is waited for.
package main

import (
	"sync"
	"time"
)

type expiringCache struct {
	mu      sync.Mutex
	entries map[string]time.Time
	stop    chan struct{}
	stopped chan struct{}
}

func newExpiringCache(interval time.Duration) *expiringCache {
	c := &expiringCache{entries: map[string]time.Time{}}
	c.stop, c.stopped = make(chan struct{}), make(chan struct{})
	ticker := time.NewTicker(interval)
	go func() {
		defer close(c.stopped)
		defer ticker.Stop()
		for {
			select {
			case now := <-ticker.C:
				c.expire(now)
			case <-c.stop:
				return
			}
		}
	}()
	return c
}

func (c *expiringCache) expire(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, due := range c.entries {
		if now.After(due) {
			delete(c.entries, key)
		}
	}
}

func (c *expiringCache) put(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries[key] = time.Now().Add(time.Second)
}

func tickerLoop() {
	cache := newExpiringCache(time.Minute)
	cache.put("a")
	cache.put("b")
	close(cache.stop)
	<-cache.stopped
}

func init() { programs["ticker_loop"] = tickerLoop }
