// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As index_journal_buggy, but both take the journal's lock first.
package main

import (
	"sync"
)

type database struct {
	journal, index sync.Mutex
	committing     chan struct{}
	compacting     chan struct{}
	entries        int
	both           sync.WaitGroup
}

func (d *database) commit() {
	defer d.both.Done()
	d.journal.Lock()
	defer d.journal.Unlock()
	close(d.committing)
	d.index.Lock()
	defer d.index.Unlock()
	d.entries++
}

func (d *database) compact() {
	defer d.both.Done()
	close(d.compacting)
	<-d.committing
	d.journal.Lock()
	defer d.journal.Unlock()
	d.index.Lock()
	defer d.index.Unlock()
	d.entries = 0
}

func indexJournal() {
	d := &database{committing: make(chan struct{}), compacting: make(chan struct{})}
	d.both.Add(2)
	go d.commit()
	go d.compact()
	<-d.committing
	<-d.compacting
	d.both.Wait()
}

func init() { programs["index_journal"] = indexJournal }
