// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A cache looks an entry up under its lock, finds that it is old, and calls what stores a new one: that takes the
// same lock.
//
// want: global-deadlock
// always
// cause: double locking
package main

import "sync"

type versionCache struct {
	mu      sync.Mutex
	version map[string]int
}

func (c *versionCache) store(name string, version int) {
	c.mu.Lock()
	defer c.mu.Unlock()
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
