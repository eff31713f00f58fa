// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As wrong_parent_buggy, but the probes' context is a child of the monitor's.
package main

import (
	"context"
	"sync"
)

type monitor struct {
	results chan string
	probes  sync.WaitGroup
}

func (m *monitor) probe(ctx context.Context, host string) {
	defer m.probes.Done()
	for {
		select {
		case m.results <- host:
		case <-ctx.Done():
			return
		}
	}
}

func (m *monitor) run(ctx context.Context, hosts ...string) {
	background, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, host := range hosts {
		m.probes.Add(1)
		go m.probe(background, host)
	}
	<-ctx.Done()
}

func wrongParent() {
	ctx, cancel := context.WithCancel(context.Background())
	m := &monitor{results: make(chan string)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.run(ctx, "a", "b")
	}()
	for i := 0; i < 4; i++ {
		<-m.results
	}
	cancel()
	<-ended
	m.probes.Wait()
}

func init() { programs["wrong_parent"] = wrongParent }
