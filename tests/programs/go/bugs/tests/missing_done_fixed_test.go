// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As missing_done_buggy, but Done is deferred.
package tests

import (
	"sync"
	"testing"
)

type crawl struct {
	mu      sync.Mutex
	pages   []string
	tasks   sync.WaitGroup
	visited chan int
}

func (c *crawl) visit(page string) {
	defer c.tasks.Done()
	if page == "" {
		c.visited <- 0
		return
	}
	c.mu.Lock()
	c.pages = append(c.pages, page)
	c.mu.Unlock()
	c.visited <- 1
}

func TestMissingDone(t *testing.T) {
	pages := []string{"index", "", "about"}
	c := &crawl{visited: make(chan int, len(pages))}
	stored := make(chan struct{})
	for _, page := range pages {
		c.tasks.Add(1)
		go c.visit(page)
	}
	go func() { // stores the pages when all of them are there
		defer close(stored)
		c.tasks.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.pages = nil
	}()
	n := 0
	for range pages {
		n += <-c.visited
	}
	if n != 2 {
		t.Error(n)
	}
	<-stored
}
