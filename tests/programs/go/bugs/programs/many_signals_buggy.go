// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A receiver waits for one of many signals, which are all over when it comes late.
//
// want: leak 1
// sometimes
// cause: condition variable
package main

import "sync"

func manySignals() {
	var mu sync.Mutex
	arrived := sync.NewCond(&mu)
	waiting := make(chan struct{})
	go func() {
		waiting <- struct{}{}
		mu.Lock()
		arrived.Wait()
		mu.Unlock()
	}()
	<-waiting
	for i := 0; i < 3000; i++ {
		arrived.Signal()
	}
}

func init() { programs["many_signals"] = manySignals }
