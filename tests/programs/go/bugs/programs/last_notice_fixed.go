// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As last_notice_buggy, but the goroutine looks whether the board has been closed.
package main

import "sync"

type board struct {
	mu      sync.Mutex
	notice  *sync.Cond
	notices int
	over    bool
}

func (b *board) next() <-chan struct{} {
	came := make(chan struct{})
	go func() {
		defer close(came)
		b.mu.Lock()
		for b.notices == 0 && !b.over {
			b.notice.Wait()
		}
		if b.notices > 0 {
			b.notices--
		}
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
			b.mu.Lock()
			b.over = true
			b.mu.Unlock()
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
		b.notices++
		b.notice.Signal()
		b.mu.Unlock()
	}
	close(closed)
	<-done
}

func init() { programs["last_notice"] = lastNotice }
