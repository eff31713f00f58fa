// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// Lines go from a reader through a parser to a search, which returns at its first hit. The parser is left in its
// send, and the reader behind it in its own.
//
// want: leak 2
// always
// cause: channel
package main

import (
	"strconv"
	"strings"
)

func readLines(n int) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for i := 0; i < n; i++ {
			lines <- "line=" + strconv.Itoa(i)
		}
	}()
	return lines
}

func parseLines(lines <-chan string) <-chan string {
	values := make(chan string)
	go func() {
		defer close(values)
		for line := range lines {
			values <- strings.TrimPrefix(line, "line=")
		}
	}()
	return values
}

func findValue(wanted string) bool {
	for value := range parseLines(readLines(100)) {
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
