// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A task that fails is done twice: once where it fails, once by the deferred call. The counter of the wait group
// becomes negative, which is a panic.
//
// want: crash
// always
// cause: misused wait group
package tests

import (
	"errors"
	"sync"
	"testing"
)

type upload struct {
	parts    sync.WaitGroup
	failed   chan error
	returned chan int
}

func (u *upload) send(part int) {
	defer u.parts.Done()
	if part == 1 {
		u.failed <- errors.New("too large")
		u.parts.Done()
	}
}

func TestDoneTwice(t *testing.T) {
	u := &upload{failed: make(chan error, 2), returned: make(chan int, 2)}
	for part := 0; part < 2; part++ {
		u.parts.Add(1)
		go func(part int) {
			u.send(part)
			u.returned <- part
		}(part)
	}
	u.parts.Wait()
	if <-u.returned+<-u.returned != 1 {
		t.Error("not both parts")
	}
}
