// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As heartbeat_lock_buggy, but the heart beats without the lock.
package tests

import (
	"sync"
	"testing"
)

type node struct {
	mu    sync.Mutex
	beats chan int
	lost  bool
	sent  int
	gone  chan struct{}
}

func (n *node) beat() {
	n.mu.Lock()
	lost := n.lost
	n.sent++
	sent := n.sent
	n.mu.Unlock()
	if lost {
		return
	}
	select {
	case n.beats <- sent:
	case <-n.gone:
	}
}

func (n *node) monitor() {
	select {
	case <-n.beats:
		return
	default:
	}
	close(n.gone)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lost = true
}

func TestHeartbeatLock(t *testing.T) {
	n := &node{beats: make(chan int)}
	n.gone = make(chan struct{})
	var both sync.WaitGroup
	both.Add(2)
	go func() {
		defer both.Done()
		n.monitor()
	}()
	go func() {
		defer both.Done()
		n.beat()
	}()
	both.Wait()
}
