// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// The workers get a copy of the wait group. They are done with the copy, and the wait is for the original.
//
// want: global-deadlock
// always
// cause: misused wait group
package main

import "sync"

func resize(image int, done sync.WaitGroup) int {
	defer done.Done()
	return image / 2
}

func groupByValue() {
	var done sync.WaitGroup
	for image := 0; image < 3; image++ {
		done.Add(1)
		go resize(image, done)
	}
	done.Wait()
}

func init() { programs["group_by_value"] = groupByValue }
