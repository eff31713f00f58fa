// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// An audit holds its own lock and wants the ledger's; a booking holds the ledger's lock and wants the audit's. The
// booking begins when the audit has.
//
// want: global-deadlock
// always
// cause: AB-BA
package tests

import (
	"sync"
	"testing"
)

type ledger struct {
	mu, audit sync.Mutex
	entries   []int
	checked   int
	auditing  chan struct{}
	audited   sync.WaitGroup
}

func (l *ledger) check() {
	defer l.audited.Done()
	l.audit.Lock()
	defer l.audit.Unlock()
	<-l.auditing
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checked = len(l.entries)
}

func (l *ledger) book(amount int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.auditing <- struct{}{}
	l.audit.Lock()
	defer l.audit.Unlock()
	l.entries = append(l.entries, amount)
}

func TestLedgerAudit(t *testing.T) {
	l := &ledger{auditing: make(chan struct{})}
	l.audited.Add(1)
	go l.check()
	l.book(10)
	l.audited.Wait()
	if l.checked > 1 {
		t.Error(l.checked)
	}
}
