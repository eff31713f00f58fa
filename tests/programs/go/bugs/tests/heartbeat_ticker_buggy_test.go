// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A service waits for its goroutines and only then tells them to stop. The runtime does not notice, because one of
// them also waits for the next tick of a clock, which comes in a minute.
//
// want: global-deadlock unnoticed
// always
// cause: channel & wait group
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
	a.parts.Wait()
	close(a.stop)
}

func TestHeartbeatTicker(t *testing.T) {
	a := &agent{stop: make(chan struct{})}
	a.parts.Add(1)
	go a.beat(time.Minute)
	a.shutDown()
}
