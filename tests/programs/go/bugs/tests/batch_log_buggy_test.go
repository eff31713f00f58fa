// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A batch of lines is put into a buffer under the lock of the log, and is larger than the buffer. Who empties the
// buffer needs the lock first.
//
// want: leak 2
// always
// cause: channel & lock
package tests

import (
	"runtime"
	"sync"
	"testing"
)

type batchLog struct {
	mu      sync.Mutex
	level   int
	lines   chan string
	written int
}

func (l *batchLog) print(lines ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.level == 0 {
		return
	}
	for _, line := range lines {
		l.lines <- line
	}
}

func (l *batchLog) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.lines) > 0 {
		<-l.lines
		l.written++
	}
}

func TestBatchLog(t *testing.T) {
	l := &batchLog{level: 1, lines: make(chan string, 2)}
	go l.print("one", "two", "three")
	for len(l.lines) == 0 {
		runtime.Gosched()
	}
	go l.flush()
}
