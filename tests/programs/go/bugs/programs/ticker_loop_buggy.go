// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A cache starts a loop that throws old entries away from time to time. Nothing ends the loop when the cache is
// not used any more.
//
// want: leak 1
// always
// cause: channel
package main

import (
	"sync"
	"time"
)

type expiringCache struct {
	mu      sync.Mutex
	entries map[string]time.Time
}

func newExpiringCache(interval time.Duration) *expiringCache {
	c := &expiringCache{entries: map[string]time.Time{}}
	ticker := time.NewTicker(interval)
	go func() {
		for now := range ticker.C {
			c.expire(now)
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
}

func init() { programs["ticker_loop"] = tickerLoop }
