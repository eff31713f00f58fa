// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// Workers put their results into a channel with little room. The results are read only after all workers are done,
// which they cannot be before somebody reads.
//
// want: global-deadlock
// always
// cause: channel & wait group
package main

import "sync"

func squareAll(numbers []int) []int {
	results := make(chan int, 1)
	var workers sync.WaitGroup
	for _, n := range numbers {
		workers.Add(1)
		go func(n int) {
			defer workers.Done()
			results <- n * n
		}(n)
	}
	workers.Wait()
	close(results)
	var squares []int
	for square := range results {
		squares = append(squares, square)
	}
	return squares
}

func waitBeforeDrain() {
	squareAll([]int{1, 2, 3, 4})
}

func init() { programs["wait_before_drain"] = waitBeforeDrain }
