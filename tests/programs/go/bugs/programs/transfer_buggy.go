// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// Money goes from one account to another and back at the same time, and each transfer locks the account that it
// takes from before the other one.
//
// want: global-deadlock
// sometimes
// cause: AB-BA
package main

import "sync"

type account struct {
	number, balance int
	mu              sync.Mutex
}

func transferMoney(from, to *account, amount int) {
	from.mu.Lock()
	defer from.mu.Unlock()
	to.mu.Lock()
	defer to.mu.Unlock()
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
