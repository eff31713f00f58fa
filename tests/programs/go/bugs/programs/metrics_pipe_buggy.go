// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A counter that takes its lock twice stops the main goroutine for ever. The runtime does not notice, because
// another goroutine waits for input from a pipe that stays open.
//
// want: global-deadlock unnoticed
// always
// cause: double locking
package main

import (
	"bufio"
	"os"
	"sync"
)

type meter struct {
	mu     sync.Mutex
	counts map[string]int
}

func (m *meter) sum() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := 0
	for _, n := range m.counts {
		sum += n
	}
	return sum
}

func (m *meter) add(name string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[name]++
	return m.sum()
}

func metricsPipe() {
	in, out, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	m := &meter{counts: map[string]int{}}
	ended := make(chan struct{})
	go func() { // commands from outside
		defer close(ended)
		for lines := bufio.NewScanner(in); lines.Scan(); {
		}
	}()
	m.add("started")
	out.Close()
	<-ended
}

func init() { programs["metrics_pipe"] = metricsPipe }
