// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As nested_read_buggy, but the inner read is without the lock.
package main

import (
	"sync"
)

type table struct {
	mu   sync.RWMutex
	rows []int
}

func (t *table) count() int {
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
	var done sync.WaitGroup
	done.Add(2)
	go func() {
		defer done.Done()
		t.mean()
	}()
	go func() {
		defer done.Done()
		t.insert(4)
	}()
	done.Wait()
}

func init() { programs["nested_read"] = nestedRead }
