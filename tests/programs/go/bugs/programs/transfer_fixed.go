// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As transfer_buggy, but the account with the smaller number is locked first.
package main

import "sync"

type account struct {
	number, balance int
	mu              sync.Mutex
}

func transferMoney(from, to *account, amount int) {
	first, second := from, to
	if second.number < first.number {
		first, second = second, first
	}
	first.mu.Lock()
	defer first.mu.Unlock()
	second.mu.Lock()
	defer second.mu.Unlock()
	from.balance -= amount
	to.balance += amount
}

func transfer() {
	a, b := &account{number: 1, balance: 10}, &account{number: 2, balance: 10}
	var transfers sync.WaitGroup
	transfers.Add(2)
	go func() {
		defer transfers.Done()
		transferMoney(a, b, 3)
	}()
	go func() {
		defer transfers.Done()
		transferMoney(b, a, 4)
	}()
	transfers.Wait()
}

func init() { programs["transfer"] = transfer }
