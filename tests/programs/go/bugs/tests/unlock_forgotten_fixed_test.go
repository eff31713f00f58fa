// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As unlock_forgotten_buggy, but every way out unlocks.
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
		n.mu.Unlock()
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
	n.users.Add(1)
	go func() {
		defer n.users.Done()
		_ = n.add("bob")
	}()
	n.users.Wait()
}
