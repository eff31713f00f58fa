// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As cond_and_channel_buggy, but the state is told without the lock.
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
	both    sync.WaitGroup
}

func (p *podState) start() {
	defer p.both.Done()
	p.mu.Lock()
	p.phase = "running"
	p.changed.Broadcast()
	p.mu.Unlock()
	p.events <- "started"
}

func (p *podState) watch() {
	defer p.both.Done()
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
	p.both.Add(2)
	go p.watch()
	for !p.isWatched() {
		runtime.Gosched()
	}
	go p.start()
	p.both.Wait()
}
