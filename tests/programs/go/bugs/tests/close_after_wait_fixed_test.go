// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As close_after_wait_buggy, but the rest is read, too.
package tests

import (
	"sync"
	"testing"
)

func firstFinding(checks int) int {
	findings := make(chan int)
	var running sync.WaitGroup
	for check := 1; check <= checks; check++ {
		running.Add(1)
		go func(check int) {
			defer running.Done()
			findings <- check
		}(check)
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		running.Wait()
		close(findings)
	}()
	first := 0
	for finding := range findings {
		if first == 0 {
			first = finding
		}
	}
	<-closed
	return first
}

func TestCloseAfterWait(t *testing.T) {
	if firstFinding(3) == 0 {
		t.Error("nothing found")
	}
}
