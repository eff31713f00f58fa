// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As queue_stop_buggy, but the queue is told under its lock.
package main

import "sync"

type jobQueue struct {
	mu      sync.Mutex
	filled  *sync.Cond
	jobs    []int
	stopped chan struct{}
	worker  sync.WaitGroup
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
	defer q.worker.Done()
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
	q.mu.Lock()
	close(q.stopped)
	q.mu.Unlock()
	q.filled.Broadcast()
}

func queueStop() {
	q := &jobQueue{stopped: make(chan struct{})}
	q.filled = sync.NewCond(&q.mu)
	q.worker.Add(1)
	go q.work()
	for i := 0; i < 3; i++ {
		q.add(i)
	}
	q.stop()
	q.worker.Wait()
}

func init() { programs["queue_stop"] = queueStop }
