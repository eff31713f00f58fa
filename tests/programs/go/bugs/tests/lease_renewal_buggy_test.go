// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A lease is renewed by a message to its keeper, after a look whether the keeper still runs. When the keeper stops
// between the look and the message, the renewal waits for ever.
//
// want: leak 1
// sometimes
// cause: channel
package tests

import (
	"sync"
	"testing"
)

type leaseKeeper struct {
	renewals chan int
	stop     chan struct{}
	expired  chan struct{}
	renewed  int
}

func (k *leaseKeeper) keep() {
	defer close(k.expired)
	for {
		select {
		case n := <-k.renewals:
			k.renewed += n
		case <-k.stop:
			return
		}
	}
}

func (k *leaseKeeper) renew() bool {
	select {
	case <-k.expired:
		return false
	default:
	}
	k.renewals <- 1
	return true
}

func TestLeaseRenewal(t *testing.T) {
	k := &leaseKeeper{renewals: make(chan int), stop: make(chan struct{}), expired: make(chan struct{})}
	var keeper sync.WaitGroup
	keeper.Add(1)
	go func() {
		defer keeper.Done()
		k.keep()
	}()
	go func() {
		for k.renew() {
		}
	}()
	close(k.stop)
	keeper.Wait()
	if k.renewed < 0 {
		t.Error(k.renewed)
	}
}
