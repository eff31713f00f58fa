// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As wait_before_drain_buggy, but the wait is a goroutine's, the results are read meanwhile.
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
	ended := make(chan struct{})
	go func() {
		workers.Wait()
		close(results)
		close(ended)
	}()
	var squares []int
	for square := range results {
		squares = append(squares, square)
	}
	<-ended
	return squares
}

func waitBeforeDrain() {
	squareAll([]int{1, 2, 3, 4})
}

func init() { programs["wait_before_drain"] = waitBeforeDrain }
