// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As lease_renewal_buggy, but the renewal is given up when the keeper stops.
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
	select {
	case k.renewals <- 1:
		return true
	case <-k.expired:
		return false
	}
}

func TestLeaseRenewal(t *testing.T) {
	k := &leaseKeeper{renewals: make(chan int), stop: make(chan struct{}), expired: make(chan struct{})}
	var holder sync.WaitGroup
	holder.Add(1)
	var keeper sync.WaitGroup
	keeper.Add(1)
	go func() {
		defer keeper.Done()
		k.keep()
	}()
	go func() {
		defer holder.Done()
		for k.renew() {
		}
	}()
	close(k.stop)
	keeper.Wait()
	holder.Wait()
	if k.renewed < 0 {
		t.Error(k.renewed)
	}
}
