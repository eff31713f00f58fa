// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As added_twice_buggy, but one is added for each job.
package tests

import (
	"sync"
	"testing"
)

type renderJobs struct {
	pending sync.WaitGroup
	pages   []string
}

func (r *renderJobs) render(page int) {
	defer r.pending.Done()
	r.pages[page] = "done"
}

func TestAddedTwice(t *testing.T) {
	r := &renderJobs{pages: make([]string, 3)}
	for page := range r.pages {
		r.pending.Add(1)
		go r.render(page)
	}
	r.pending.Wait()
	for page, state := range r.pages {
		if state != "done" {
			t.Error(page, state)
		}
	}
}
