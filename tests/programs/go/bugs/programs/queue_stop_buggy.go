// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// The worker of a queue looks whether the queue is stopped, then waits for a job. Stop closes the channel and
// wakes the worker without the lock: when that happens between the look and the wait, the worker sleeps on.
//
// want: leak 1
// sometimes
// cause: channel & condition variable
package main

import "sync"

type jobQueue struct {
	mu      sync.Mutex
	filled  *sync.Cond
	jobs    []int
	stopped chan struct{}
}

func (q *jobQueue) isStopped() bool {
	select {
	case <-q.stopped:
		return true
	default:
		return false
	}
}

func (q *jobQueue) work() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		for len(q.jobs) == 0 {
			if q.isStopped() {
				return
			}
			q.filled.Wait()
		}
		q.jobs = q.jobs[1:]
	}
}

func (q *jobQueue) add(job int) {
	q.mu.Lock()
	q.jobs = append(q.jobs, job)
	q.mu.Unlock()
	q.filled.Signal()
}

func (q *jobQueue) stop() {
	close(q.stopped)
	q.filled.Broadcast()
}

func queueStop() {
	q := &jobQueue{stopped: make(chan struct{})}
	q.filled = sync.NewCond(&q.mu)
	go q.work()
	for i := 0; i < 3; i++ {
		q.add(i)
	}
	q.stop()
}

func init() { programs["queue_stop"] = queueStop }
