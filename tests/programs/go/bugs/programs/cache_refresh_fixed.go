// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As cache_refresh_buggy, but what is called with the lock does not take it.
package main

import "sync"

type versionCache struct {
	mu      sync.Mutex
	version map[string]int
}

func (c *versionCache) store(name string, version int) {
	c.version[name] = version
}

func (c *versionCache) get(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.version[name]; !known {
		c.store(name, 1)
	}
	return c.version[name]
}

func cacheRefresh() {
	c := &versionCache{version: map[string]int{}}
	got := make(chan int, 1)
	go func() { got <- c.get("libc") }()
	<-got
}

func init() { programs["cache_refresh"] = cacheRefresh }
