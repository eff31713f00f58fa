// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A commit holds the journal and wants the index, a compaction holds the index and wants the journal; each begins
// when the other has.
//
// want: leak 2
// always
// cause: AB-BA
package main

import (
	"sync"
	"time"
)

type database struct {
	journal, index sync.Mutex
	committing     chan struct{}
	compacting     chan struct{}
	entries        int
}

func (d *database) commit() {
	d.journal.Lock()
	defer d.journal.Unlock()
	close(d.committing)
	<-d.compacting
	d.index.Lock()
	defer d.index.Unlock()
	d.entries++
}

func (d *database) compact() {
	d.index.Lock()
	defer d.index.Unlock()
	close(d.compacting)
	<-d.committing
	d.journal.Lock()
	defer d.journal.Unlock()
	d.entries = 0
}

func indexJournal() {
	d := &database{committing: make(chan struct{}), compacting: make(chan struct{})}
	go d.commit()
	go d.compact()
	<-d.committing
	<-d.compacting
	time.Sleep(time.Millisecond) // shutting down the rest
}

func init() { programs["index_journal"] = indexJournal }
