// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A node sends heartbeats with its lock held. Its monitor takes the lock to mark the node as lost when it has
// heard nothing at its first look: if a heartbeat is being sent by then, neither gets on.
//
// want: leak 2
// sometimes
// cause: channel & lock
package tests

import (
	"sync"
	"testing"
	"time"
)

type node struct {
	mu    sync.Mutex
	beats chan int
	lost  bool
	sent  int
}

func (n *node) beat() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.lost {
		n.sent++
		n.beats <- n.sent
	}
}

func (n *node) monitor() {
	select {
	case <-n.beats:
		return
	default:
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lost = true
}

func TestHeartbeatLock(t *testing.T) {
	n := &node{beats: make(chan int)}
	done := make(chan struct{}, 2)
	go func() {
		n.monitor()
		done <- struct{}{}
	}()
	go func() {
		n.beat()
		done <- struct{}{}
	}()
	for i := 0; i < 2; i++ {
		select {
		case <-done:
		case <-time.After(10 * time.Millisecond):
		}
	}
}
