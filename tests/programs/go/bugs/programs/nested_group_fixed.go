// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As nested_group_buggy, but a task of a task does not need a place of its own.
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
		func() { visited++ }()
	})
	g.tasks.Wait()
}

func init() { programs["nested_group"] = nestedGroup }
