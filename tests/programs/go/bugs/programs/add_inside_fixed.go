// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As add_inside_buggy, but Add comes before the go statement.
package main

import "sync"

func gatherSizes(names []string) int {
	sizes := make(chan int, len(names))
	var scans sync.WaitGroup
	for _, name := range names {
		scans.Add(1)
		go func(name string) {
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
}

func init() { programs["add_inside"] = addInside }
