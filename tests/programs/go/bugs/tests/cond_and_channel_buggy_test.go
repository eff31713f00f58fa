// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A state is changed and told over a channel, with its lock held. The one who listens first waits, under the same
// lock, for a condition that comes only after the telling.
//
// want: leak 2
// always
// cause: channel & condition variable
package tests

import (
	"runtime"
	"sync"
	"testing"
)

type podState struct {
	mu      sync.Mutex
	changed *sync.Cond
	phase   string
	waits   bool
	events  chan string
}

func (p *podState) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events <- "started"
	p.phase = "running"
	p.changed.Broadcast()
}

func (p *podState) watch() {
	p.mu.Lock()
	p.waits = true
	for p.phase != "running" {
		p.changed.Wait()
	}
	p.mu.Unlock()
	<-p.events
}

func (p *podState) isWatched() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waits
}

func TestCondAndChannel(t *testing.T) {
	p := &podState{events: make(chan string)}
	p.changed = sync.NewCond(&p.mu)
	go p.watch()
	for !p.isWatched() {
		runtime.Gosched()
	}
	go p.start()
}
