// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As heartbeat_ticker_buggy, but the stop comes before the wait.
package tests

import (
	"sync"
	"testing"
	"time"
)

type agent struct {
	stop  chan struct{}
	parts sync.WaitGroup
	beats int
}

func (a *agent) beat(interval time.Duration) {
	defer a.parts.Done()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			a.beats++
		case <-a.stop:
			return
		}
	}
}

func (a *agent) shutDown() {
	close(a.stop)
	a.parts.Wait()
}

func TestHeartbeatTicker(t *testing.T) {
	a := &agent{stop: make(chan struct{})}
	a.parts.Add(1)
	go a.beat(time.Minute)
	a.shutDown()
}
