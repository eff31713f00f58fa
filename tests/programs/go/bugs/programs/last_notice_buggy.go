// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A board has a goroutine wait for each notice. When the board is closed it wakes that goroutine by a last signal and
// waits for it; the goroutine may not be waiting for the signal yet.
//
// want: global-deadlock
// sometimes
// cause: channel & condition variable
package main

import "sync"

type board struct {
	mu     sync.Mutex
	notice *sync.Cond
}

func (b *board) next() <-chan struct{} {
	came := make(chan struct{})
	go func() {
		defer close(came)
		b.mu.Lock()
		b.notice.Wait()
		b.mu.Unlock()
	}()
	return came
}

func (b *board) read(closed <-chan struct{}) {
	for {
		came := b.next()
		select {
		case <-came:
		case <-closed:
			b.notice.Signal()
			<-came
			return
		}
	}
}

func lastNotice() {
	b := &board{}
	b.notice = sync.NewCond(&b.mu)
	closed, done := make(chan struct{}), make(chan struct{})
	go func() {
		b.read(closed)
		close(done)
	}()
	for i := 0; i < 5; i++ {
		b.mu.Lock()
		b.notice.Signal()
		b.mu.Unlock()
	}
	close(closed)
	<-done
}

func init() { programs["last_notice"] = lastNotice }
