// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A writer marks a file as busy and then as idle again, with atomic operations. Who closes the file while it is busy
// waits for the writer to see that, which it does not: it stores idle over it.
//
// want: global-deadlock
// sometimes
// cause: channel
package main

import "sync/atomic"

const (
	fileIdle = iota
	fileBusy
	fileClosing
)

type stateFile struct {
	state  atomic.Int32
	size   atomic.Int64
	closed chan struct{}
}

func (f *stateFile) write(bytes int64) bool {
	if !f.state.CompareAndSwap(fileIdle, fileBusy) {
		return false
	}
	f.size.Add(bytes)
	f.state.Store(fileIdle)
	return true
}

func (f *stateFile) close() {
	if f.state.Swap(fileClosing) == fileBusy {
		<-f.closed
	}
}

func atomicState() {
	f := &stateFile{closed: make(chan struct{})}
	done := make(chan bool, 1)
	go func() { done <- f.write(10) }()
	f.close()
	<-done
}

func init() { programs["atomic_state"] = atomicState }
