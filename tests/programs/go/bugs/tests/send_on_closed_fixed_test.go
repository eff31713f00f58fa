// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As send_on_closed_buggy, but looking and sending happen under one lock.
package tests

import (
	"sync"
	"testing"
)

type lineLog struct {
	mu     sync.Mutex
	closed bool
	lines  chan string
}

func (l *lineLog) print(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.lines <- line
	}
}

func (l *lineLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	close(l.lines)
}

func TestSendOnClosed(t *testing.T) {
	l := &lineLog{lines: make(chan string, 8)}
	var printers sync.WaitGroup
	for i := 0; i < 2; i++ {
		printers.Add(1)
		go func() {
			defer printers.Done()
			l.print("hello")
		}()
	}
	l.close()
	printers.Wait()
	n := 0
	for range l.lines {
		n++
	}
	if n > 2 {
		t.Errorf("%d lines", n)
	}
}

func TestLogWithoutHurry(t *testing.T) {
	l := &lineLog{lines: make(chan string, 8)}
	l.print("hello")
	l.close()
	l.print("too late")
	if <-l.lines != "hello" {
		t.Error("no line")
	}
}
