// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As once_recursion_buggy, but what the Once calls does not use it.
package tests

import (
	"sync"
	"testing"
)

type mimeTypes struct {
	once  sync.Once
	types map[string]string
	users sync.WaitGroup
}

func (m *mimeTypes) of(suffix string) string {
	m.once.Do(m.load)
	return m.types[suffix]
}

func (m *mimeTypes) load() {
	m.types = map[string]string{"htm": "text/html"}
	m.types["html"] = m.types["htm"]
}

func TestOnceRecursion(t *testing.T) {
	m := &mimeTypes{}
	m.users.Add(1)
	go func() { // so that it is there when it is needed
		defer m.users.Done()
		m.of("html")
	}()
	m.users.Wait()
}
