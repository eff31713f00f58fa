// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// Package left says which goroutines are left, for programs built with the tag check.
package left

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// How often and how long it is waited for goroutines that are not blocked.
const (
	looks = 100
	pause = 2 * time.Millisecond
)

// Report waits until no goroutine is about to run, and prints "left: BLOCKED RUNNABLE EARLY" and the stacks of those
// that are left besides the calling one: how many are blocked, how many are not, and how many were there when Report
// was called. The reader of signals is not counted: nothing ends it.
func Report() {
	early := len(others())
	var stacks []string
	blocked, runnable := 0, 0
	for look := 0; look < looks; look++ {
		stacks = others()
		blocked, runnable = 0, 0
		for _, stack := range stacks {
			if isRunnable(stack) {
				runnable++
			} else {
				blocked++
			}
		}
		if runnable == 0 && look > 0 {
			break
		}
		time.Sleep(pause)
	}
	fmt.Fprintf(os.Stderr, "left: %d %d %d\n%s\n", blocked, runnable, early, strings.Join(stacks, "\n\n"))
}

// The stacks of all goroutines but the calling one, as the runtime prints them.
func others() []string {
	text := make([]byte, 1<<20)
	text = text[:runtime.Stack(text, true)]
	var stacks []string
	for i, stack := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
		if i > 0 && !strings.Contains(stack, "os/signal.loop") {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}

func isRunnable(stack string) bool {
	header := strings.SplitN(stack, "\n", 2)[0]
	return strings.Contains(header, "[run") || strings.Contains(header, "[sleep") || strings.Contains(header, "[syscall")
}
