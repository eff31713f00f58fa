// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A group runs a limited number of tasks at a time. A task that adds another one waits for a place while it holds
// the last, and the group waits for the task.
//
// want: global-deadlock
// always
// cause: channel & wait group
package main

import "sync"

type taskGroup struct {
	places chan struct{}
	tasks  sync.WaitGroup
}

func (g *taskGroup) run(task func()) {
	g.places <- struct{}{}
	g.tasks.Add(1)
	go func() {
		defer func() {
			<-g.places
			g.tasks.Done()
		}()
		task()
	}()
}

func nestedGroup() {
	g := &taskGroup{places: make(chan struct{}, 1)}
	visited := 0
	g.run(func() {
		visited++
		g.run(func() { visited++ })
	})
	g.tasks.Wait()
}

func init() { programs["nested_group"] = nestedGroup }
