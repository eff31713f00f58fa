// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As many_signals_buggy, but the receiver looks whether it has to wait.
package main

import "sync"

func manySignals() {
	var mu sync.Mutex
	arrived, count := sync.NewCond(&mu), 0
	waiting, received := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(received)
		waiting <- struct{}{}
		mu.Lock()
		defer mu.Unlock()
		for count == 0 {
			arrived.Wait()
		}
	}()
	<-waiting
	for i := 0; i < 3000; i++ {
		mu.Lock()
		count++
		mu.Unlock()
		arrived.Signal()
	}
	<-received
}

func init() { programs["many_signals"] = manySignals }
