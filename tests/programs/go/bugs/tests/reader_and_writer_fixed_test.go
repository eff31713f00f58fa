// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As reader_and_writer_buggy, but the second look needs no lock.
package tests

import (
	"sync"
	"testing"
)

type tree struct {
	mu    sync.RWMutex
	nodes map[string]int
	both  sync.WaitGroup
}

func (r *tree) has(name string) bool {
	_, there := r.nodes[name]
	return there
}

func (r *tree) check(started chan<- struct{}) {
	defer r.both.Done()
	r.mu.RLock()
	defer r.mu.RUnlock()
	started <- struct{}{}
	for name := range r.nodes {
		r.has(name)
	}
}

func (r *tree) remove(name string) {
	defer r.both.Done()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.nodes, name)
}

func TestReaderAndWriter(t *testing.T) {
	r := &tree{nodes: map[string]int{"a": 1, "b": 2}}
	started := make(chan struct{})
	r.both.Add(2)
	go r.check(started)
	<-started
	go r.remove("a")
	r.both.Wait()
}
