// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A table of names returns an error without unlocking. Whoever comes next waits for ever, although nobody is
// inside.
//
// want: leak 1
// always
// cause: double locking
package tests

import (
	"errors"
	"sync"
	"testing"
)

type nameTable struct {
	mu    sync.Mutex
	names map[string]int
	users sync.WaitGroup
}

func (n *nameTable) add(name string) error {
	n.mu.Lock()
	if name == "" {
		return errors.New("no name")
	}
	n.names[name]++
	n.mu.Unlock()
	return nil
}

func TestUnlockForgotten(t *testing.T) {
	n := &nameTable{names: map[string]int{}}
	for _, name := range []string{"ann", ""} {
		n.users.Add(1)
		go func(name string) {
			defer n.users.Done()
			_ = n.add(name)
		}(name)
		n.users.Wait()
	}
	go func() {
		_ = n.add("bob")
	}()
}
