// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// Add is called by the goroutine that is to be waited for. When it comes too late, Wait returns at once, the
// channel of the results is closed, and the goroutine sends on a closed channel.
//
// want: crash
// sometimes
// cause: misused wait group
package main

import (
	"sync"
	"time"
)

func gatherSizes(names []string) int {
	sizes := make(chan int, len(names))
	var scans sync.WaitGroup
	for _, name := range names {
		go func(name string) {
			scans.Add(1)
			defer scans.Done()
			sizes <- len(name)
		}(name)
	}
	scans.Wait()
	close(sizes)
	sum := 0
	for size := range sizes {
		sum += size
	}
	return sum
}

func addInside() {
	gatherSizes([]string{"a", "bc", "def"})
	time.Sleep(time.Millisecond) // the program goes on
}

func init() { programs["add_inside"] = addInside }
