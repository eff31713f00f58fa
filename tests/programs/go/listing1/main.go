// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// The example of GoAT (listing 1 of Taheri's dissertation, 2022; docker's 28462), with the lines of table 4.3.
//
//	listing1 successful
//	listing1 leak
//
// takes the one or the other of the two schedules shown there: at some places a goroutine waits until the other one is
// where that schedule has it. It does so by polling, so that nothing is added to what the goroutines do to each other.
package main

import (
	"bytes"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

type Container struct {
	sync.Mutex
	stop chan struct{}
}

var leak = len(os.Args) > 1 && os.Args[1] == "leak"

var chosen, locked int32 // Monitor has taken its default, and the lock

func main() {
	container := &Container{stop: make(chan struct{})}
//line listing1.go:12
	go Monitor(container)
	go StatusChange(container)
//line listing1.go:100
	if leak {
		until(stopped("main.Monitor", "sync.(*Mutex).Lock", "Lock", "semacquire"))
	} else {
		until(func() bool { return runtime.NumGoroutine() == 1 })
	}
}

//line listing1.go:15
func Monitor(cnt *Container) {
	for {
		select {
		case <-cnt.stop:
			return
		default:
//line listing1.go:200
			atomic.StoreInt32(&chosen, 1)
			if leak {
				until(stopped("main.StatusChange", "chan send", "chan send"))
			}
//line listing1.go:21
			cnt.Lock()
//line listing1.go:210
			atomic.StoreInt32(&locked, 1)
			if !leak {
				until(stopped("main.StatusChange", "sync.(*Mutex).Lock", "Lock", "semacquire"))
			}
//line listing1.go:22
			cnt.Unlock()
//line listing1.go:220
			until(stopped("main.StatusChange", "chan send", "chan send"))
		}
	}
}

//line listing1.go:24
func StatusChange(cnt *Container) {
//line listing1.go:230
	until(func() bool { return atomic.LoadInt32(&chosen) == 1 && (leak || atomic.LoadInt32(&locked) == 1) })
//line listing1.go:25
	cnt.Lock()
	cnt.stop <- struct{}{}
	cnt.Unlock()
}

//line main.go:300
func until(done func() bool) {
	for !done() {
		time.Sleep(time.Millisecond)
	}
}

// Whether the goroutine that runs the function waits in such an operation; the reasons are the runtime's words for it.
func stopped(function, operation string, reasons ...string) func() bool {
	return func() bool {
		text := make([]byte, 1<<16)
		text = text[:runtime.Stack(text, true)]
		for _, goroutine := range bytes.Split(text, []byte("\n\n")) {
			if !bytes.Contains(goroutine, []byte(function+"(")) || !bytes.Contains(goroutine, []byte(operation)) {
				continue
			}
			head := goroutine[:bytes.IndexByte(goroutine, '\n')]
			for _, reason := range reasons {
				if bytes.Contains(head, []byte(reason)) {
					return true
				}
			}
		}
		return false
	}
}
