// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A table is made at its first use. To make it is to use it, and so it waits for itself to be made.
//
// want: leak 1
// always
// cause: double locking
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
	m.types["html"] = m.of("htm")
}

func TestOnceRecursion(t *testing.T) {
	m := &mimeTypes{}
	go func() { // so that it is there when it is needed
		m.of("html")
	}()
}
