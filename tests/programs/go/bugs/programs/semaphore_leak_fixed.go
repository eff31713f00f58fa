// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As semaphore_leak_buggy, but the slot is given back in any case.
package main

import (
	"errors"
	"strings"
	"sync"
)

var errNotFound = errors.New("not found")

type downloader struct {
	slots chan struct{}
}

func (d *downloader) fetch(url string) error {
	d.slots <- struct{}{}
	defer func() { <-d.slots }()
	if strings.HasSuffix(url, "missing") {
		return errNotFound
	}
	return nil
}

func semaphoreLeak() {
	d := &downloader{slots: make(chan struct{}, 2)}
	for _, url := range []string{"a", "b/missing", "c", "d/missing"} {
		_ = d.fetch(url)
	}
	var prefetch sync.WaitGroup
	prefetch.Add(1)
	go func() { // ahead of time, in the background
		defer prefetch.Done()
		_ = d.fetch("e")
	}()
	prefetch.Wait()
}

func init() { programs["semaphore_leak"] = semaphoreLeak }
