// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As batch_log_buggy, but the lines are sent without the lock.
package tests

import (
	"sync"
	"testing"
)

type batchLog struct {
	mu      sync.Mutex
	level   int
	lines   chan string
	written int
	both    sync.WaitGroup
}

func (l *batchLog) print(lines ...string) {
	defer l.both.Done()
	l.mu.Lock()
	level := l.level
	l.mu.Unlock()
	if level == 0 {
		return
	}
	for _, line := range lines {
		l.lines <- line
	}
	close(l.lines)
}

func (l *batchLog) flush() {
	defer l.both.Done()
	for range l.lines {
		l.written++
	}
}

func TestBatchLog(t *testing.T) {
	l := &batchLog{level: 1, lines: make(chan string, 2)}
	l.both.Add(2)
	go l.print("one", "two", "three")
	go l.flush()
	l.both.Wait()
}
