// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// A goroutine reads again what it still reads, another one writes. They never meet: the writer begins when the reader is
// through.
package main

import "sync"

func main() {
	var table sync.RWMutex
	read, written := make(chan struct{}), make(chan struct{})
	go func() {
		table.RLock()
		table.RLock()
		table.RUnlock()
		table.RUnlock()
		close(read)
	}()
	go func() {
		<-read
		table.Lock()
		table.Unlock()
		close(written)
	}()
	<-written
}
