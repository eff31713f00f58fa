// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As pipeline_early_buggy, but who stops reading says so, and waits for the others.
package main

import (
	"strconv"
	"strings"
	"sync"
)

func readLines(n int, stop <-chan struct{}, stages *sync.WaitGroup) <-chan string {
	lines := make(chan string)
	stages.Add(1)
	go func() {
		defer stages.Done()
		defer close(lines)
		for i := 0; i < n; i++ {
			select {
			case lines <- "line=" + strconv.Itoa(i):
			case <-stop:
				return
			}
		}
	}()
	return lines
}

func parseLines(lines <-chan string, stop <-chan struct{}, stages *sync.WaitGroup) <-chan string {
	values := make(chan string)
	stages.Add(1)
	go func() {
		defer stages.Done()
		defer close(values)
		for line := range lines {
			select {
			case values <- strings.TrimPrefix(line, "line="):
			case <-stop:
				return
			}
		}
	}()
	return values
}

func findValue(wanted string) bool {
	stop := make(chan struct{})
	var stages sync.WaitGroup
	defer stages.Wait()
	defer close(stop)
	for value := range parseLines(readLines(100, stop, &stages), stop, &stages) {
		if value == wanted {
			return true
		}
	}
	return false
}

func pipelineEarly() {
	findValue("3")
}

func init() { programs["pipeline_early"] = pipelineEarly }
