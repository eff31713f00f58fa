// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// Two peers begin by waiting for the other one's greeting. The test waits for both.
//
// want: global-deadlock
// always
// cause: channel
package tests

import (
	"sync"
	"testing"
)

type peer struct {
	in, out chan string
	heard   string
}

func (p *peer) greet(done *sync.WaitGroup) {
	defer done.Done()
	p.heard = <-p.in
	p.out <- "hello"
}

func TestEachFirst(t *testing.T) {
	there, back := make(chan string), make(chan string)
	a, b := &peer{in: back, out: there}, &peer{in: there, out: back}
	var done sync.WaitGroup
	done.Add(2)
	go a.greet(&done)
	go b.greet(&done)
	done.Wait()
	if a.heard != b.heard {
		t.Error(a.heard, b.heard)
	}
}
