// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As each_first_buggy, but one of them speaks first.
package tests

import (
	"sync"
	"testing"
)

type peer struct {
	in, out chan string
	heard   string
}

func (p *peer) greet(first bool, done *sync.WaitGroup) {
	defer done.Done()
	if first {
		p.out <- "hello"
		p.heard = <-p.in
		return
	}
	p.heard = <-p.in
	p.out <- "hello"
}

func TestEachFirst(t *testing.T) {
	there, back := make(chan string), make(chan string)
	a, b := &peer{in: back, out: there}, &peer{in: there, out: back}
	var done sync.WaitGroup
	done.Add(2)
	go a.greet(true, &done)
	go b.greet(false, &done)
	done.Wait()
	if a.heard != b.heard {
		t.Error(a.heard, b.heard)
	}
}
