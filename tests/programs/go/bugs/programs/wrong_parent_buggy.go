// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// Cancelling the context of a monitor shall end its probes. They were given a context of their own, which nobody
// cancels.
//
// want: leak 2
// always
// cause: channel & context
package main

import "context"

type monitor struct {
	results chan string
}

func (m *monitor) probe(ctx context.Context, host string) {
	for {
		select {
		case m.results <- host:
		case <-ctx.Done():
			return
		}
	}
}

func (m *monitor) run(ctx context.Context, hosts ...string) {
	background, _ := context.WithCancel(context.Background())
	for _, host := range hosts {
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
}

func init() { programs["wrong_parent"] = wrongParent }
