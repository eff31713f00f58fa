// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A player looks whether it is paused, then waits to be resumed. A resume that comes between the two finds nobody
// waiting, and is dropped.
//
// want: global-deadlock
// sometimes
// cause: channel
package main

import "sync"

type player struct {
	mu     sync.Mutex
	paused bool
	resume chan struct{}
	chunks int
}

func (p *player) isPaused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paused
}

func (p *player) play(done chan<- int) {
	for p.chunks < 3 {
		if p.isPaused() {
			<-p.resume
		}
		p.chunks++
	}
	done <- p.chunks
}

func (p *player) unpause() {
	p.mu.Lock()
	p.paused = false
	p.mu.Unlock()
	select {
	case p.resume <- struct{}{}:
	default: // it plays
	}
}

func pauseResume() {
	p := &player{paused: true, resume: make(chan struct{})}
	done := make(chan int, 1)
	go p.play(done)
	p.unpause()
	<-done
}

func init() { programs["pause_resume"] = pauseResume }
