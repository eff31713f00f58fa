// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// The main goroutine takes a lock that it holds. A heartbeat beside it goes on, twenty thousand times a second, so that
// neither the runtime nor who waits for silence notices.
//
// want: global-deadlock unnoticed
// always
// cause: double locking
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
	return m.read()
}

func heartbeat() {
	m := &pulse{done: make(chan struct{})}
	go m.beat()
	println(m.update() >= 0)
	atomic.StoreInt32(&m.over, 1)
	<-m.done
}

func init() { programs["heartbeat"] = heartbeat }
