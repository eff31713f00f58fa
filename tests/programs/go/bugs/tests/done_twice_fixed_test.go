// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As done_twice_buggy, but only the deferred call is left.
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
