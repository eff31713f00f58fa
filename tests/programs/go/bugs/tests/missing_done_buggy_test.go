// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A task that has nothing to do returns before it says that it is done. Whoever waits for all tasks waits for
// ever.
//
// want: leak 1
// always
// cause: misused wait group
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
	if page == "" {
		c.visited <- 0
		return
	}
	c.mu.Lock()
	c.pages = append(c.pages, page)
	c.mu.Unlock()
	c.visited <- 1
	c.tasks.Done()
}

func TestMissingDone(t *testing.T) {
	pages := []string{"index", "", "about"}
	c := &crawl{visited: make(chan int, len(pages))}
	for _, page := range pages {
		c.tasks.Add(1)
		go c.visit(page)
	}
	go func() { // stores the pages when all of them are there
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
}
