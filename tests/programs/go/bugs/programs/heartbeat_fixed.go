// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As heartbeat_buggy, but what is called while the lock is held does not take it.
package main

import (
	"sync"
	"sync/atomic"
	"time"
)

type pulse struct {
	mutex sync.Mutex
	seen  int64
	last  int64
	over  int32
	done  chan struct{}
}

func (m *pulse) beat() {
	for atomic.LoadInt32(&m.over) == 0 {
		time.Sleep(50 * time.Microsecond)
		atomic.AddInt64(&m.seen, 1)
	}
	close(m.done)
}

func (m *pulse) read() int64 {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.last
}

func (m *pulse) update() int64 {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.last = atomic.LoadInt64(&m.seen)
	return m.last
}

func heartbeat() {
	m := &pulse{done: make(chan struct{})}
	go m.beat()
	println(m.update() >= 0)
	atomic.StoreInt32(&m.over, 1)
	<-m.done
}

func init() { programs["heartbeat"] = heartbeat }
