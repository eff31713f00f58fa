// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As group_by_value_buggy, but the workers get a pointer.
package main

import "sync"

func resize(image int, done *sync.WaitGroup) int {
	defer done.Done()
	return image / 2
}

func groupByValue() {
	var done sync.WaitGroup
	for image := 0; image < 3; image++ {
		done.Add(1)
		go resize(image, &done)
	}
	done.Wait()
}

func init() { programs["group_by_value"] = groupByValue }
