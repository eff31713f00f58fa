// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As ledger_audit_buggy, but the audit takes the ledger's lock first, too.
package tests

import (
	"sync"
	"testing"
)

type ledger struct {
	mu, audit sync.Mutex
	entries   []int
	checked   int
	audited   sync.WaitGroup
}

func (l *ledger) check() {
	defer l.audited.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.audit.Lock()
	defer l.audit.Unlock()
	l.checked = len(l.entries)
}

func (l *ledger) book(amount int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.audit.Lock()
	defer l.audit.Unlock()
	l.entries = append(l.entries, amount)
}

func TestLedgerAudit(t *testing.T) {
	l := &ledger{}
	l.audited.Add(1)
	go l.check()
	l.book(10)
	l.audited.Wait()
	if l.checked > 1 {
		t.Error(l.checked)
	}
}
