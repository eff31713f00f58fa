// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// The number of all jobs is added for each of them.
//
// want: global-deadlock
// always
// cause: misused wait group
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
		r.pending.Add(len(r.pages))
		go r.render(page)
	}
	r.pending.Wait()
	for page, state := range r.pages {
		if state != "done" {
			t.Error(page, state)
		}
	}
}
