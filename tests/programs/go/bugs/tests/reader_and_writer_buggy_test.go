// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A checker reads a tree twice, the second time inside the first, and in between a writer has come: the writer
// waits for the first read lock, the second read lock for the writer.
//
// want: leak 2
// always
// cause: RWR
package tests

import (
	"runtime"
	"sync"
	"testing"
)

type tree struct {
	mu    sync.RWMutex
	nodes map[string]int
	both  sync.WaitGroup
}

func (r *tree) has(name string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, there := r.nodes[name]
	return there
}

func (r *tree) check(started chan<- struct{}) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	started <- struct{}{}
	for r.mu.TryRLock() { // the other one gets ready meanwhile
		r.mu.RUnlock()
		runtime.Gosched()
	}
	for name := range r.nodes {
		r.has(name)
	}
}

func (r *tree) remove(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.nodes, name)
}

func TestReaderAndWriter(t *testing.T) {
	r := &tree{nodes: map[string]int{"a": 1, "b": 2}}
	started := make(chan struct{})
	go r.check(started)
	<-started
	go r.remove("a")
}
