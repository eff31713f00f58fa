// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// Three checks send what they found; a fourth goroutine closes the channel when all are done. The reader returns
// at the first finding, so two checks stay in their send, and the fourth goroutine in its wait.
//
// want: leak 3
// always
// cause: channel & wait group
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
	go func() {
		running.Wait()
		close(findings)
	}()
	for finding := range findings {
		return finding
	}
	return 0
}

func TestCloseAfterWait(t *testing.T) {
	if firstFinding(3) == 0 {
		t.Error("nothing found")
	}
}
