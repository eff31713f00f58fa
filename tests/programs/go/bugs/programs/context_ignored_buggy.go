// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A group of workers is cancelled when its time is over, and then waited for. One of them waits for input without
// looking at the context.
//
// want: global-deadlock
// always
// cause: channel & context
package main

import (
	"context"
	"sync"
	"time"
)

type importer struct {
	rows    chan int
	workers sync.WaitGroup
}

func (i *importer) insert() {
	defer i.workers.Done()
	sum := 0
	for row := range i.rows {
		sum += row
	}
}

func (i *importer) read(ctx context.Context) {
	defer i.workers.Done()
	for row := 0; row < 5; row++ {
		select {
		case i.rows <- row:
		case <-ctx.Done():
			return
		}
	}
	<-ctx.Done() // more may come
}

func contextIgnored() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Millisecond)
	defer cancel()
	i := &importer{rows: make(chan int)}
	i.workers.Add(2)
	go i.insert()
	go i.read(ctx)
	i.workers.Wait()
}

func init() { programs["context_ignored"] = contextIgnored }
