// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A buffered channel limits how many downloads run at a time. A download that fails keeps its slot, and once all
// slots are gone the next download waits for ever.
//
// want: leak 1
// always
// cause: channel
package main

import (
	"errors"
	"strings"
)

var errNotFound = errors.New("not found")

type downloader struct {
	slots chan struct{}
}

func (d *downloader) fetch(url string) error {
	d.slots <- struct{}{}
	if strings.HasSuffix(url, "missing") {
		return errNotFound
	}
	<-d.slots
	return nil
}

func semaphoreLeak() {
	d := &downloader{slots: make(chan struct{}, 2)}
	for _, url := range []string{"a", "b/missing", "c", "d/missing"} {
		_ = d.fetch(url)
	}
	go func() { // ahead of time, in the background
		_ = d.fetch("e")
	}()
}

func init() { programs["semaphore_leak"] = semaphoreLeak }
