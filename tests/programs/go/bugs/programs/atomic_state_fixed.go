// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As atomic_state_buggy, but the writer sees that the file is to be closed.
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
	if !f.state.CompareAndSwap(fileBusy, fileIdle) {
		close(f.closed)
	}
	return true
}

func (f *stateFile) close() {
	if f.state.Swap(fileClosing) == fileBusy {
		<-f.closed
	}
}

func atomicState() {
	f := &stateFile{closed: make(chan struct{})}
	done := make(chan bool)
	go func() { done <- f.write(10) }()
	f.close()
	<-done
}

func init() { programs["atomic_state"] = atomicState }
