// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A report reads a table under its read lock, and calls a function that takes the read lock again. A writer that
// comes between the two waits for the report, and the report for the writer.
//
// want: leak 2
// sometimes
// cause: RWR
package main

import (
	"sync"
	"time"
)

type table struct {
	mu   sync.RWMutex
	rows []int
}

func (t *table) count() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.rows)
}

func (t *table) mean() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	sum := 0
	for _, row := range t.rows {
		sum += row
	}
	return sum / t.count()
}

func (t *table) insert(row int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = append(t.rows, row)
}

func nestedRead() {
	t := &table{rows: []int{1, 2, 3}}
	done := make(chan struct{}, 2)
	go func() {
		t.mean()
		done <- struct{}{}
	}()
	go func() {
		t.insert(4)
		done <- struct{}{}
	}()
	select {
	case <-done:
		<-done
	case <-time.After(10 * time.Millisecond):
	}
}

func init() { programs["nested_read"] = nestedRead }
