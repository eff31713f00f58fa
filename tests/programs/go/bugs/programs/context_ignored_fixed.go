// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As context_ignored_buggy, but the worker looks at the context, too.
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

func (i *importer) insert(ctx context.Context) {
	defer i.workers.Done()
	sum := 0
	for {
		select {
		case row := <-i.rows:
			sum += row
		case <-ctx.Done():
			return
		}
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
	go i.insert(ctx)
	go i.read(ctx)
	i.workers.Wait()
}

func init() { programs["context_ignored"] = contextIgnored }
