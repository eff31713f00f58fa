// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As registry_session_buggy, but the name is taken before the session is locked.
package tests

import (
	"sync"
	"testing"
)

type registry struct {
	mu      sync.Mutex
	clients map[int]*client
}

type client struct {
	mu    sync.Mutex
	id    int
	name  string
	owner *registry
}

func (c *client) label() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.name
}

func (c *client) end() {
	c.mu.Lock()
	c.name = ""
	c.mu.Unlock()
	c.owner.mu.Lock()
	defer c.owner.mu.Unlock()
	delete(c.owner.clients, c.id)
}

func (r *registry) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, c := range r.clients {
		names = append(names, c.label())
	}
	return names
}

func TestRegistrySession(t *testing.T) {
	r := &registry{clients: map[int]*client{}}
	c := &client{id: 1, name: "ann", owner: r}
	r.clients[c.id] = c
	var done sync.WaitGroup
	done.Add(2)
	go func() {
		defer done.Done()
		r.names()
	}()
	go func() {
		defer done.Done()
		c.end()
	}()
	done.Wait()
}

func TestNames(t *testing.T) {
	r := &registry{clients: map[int]*client{}}
	r.clients[2] = &client{id: 2, name: "bob", owner: r}
	if names := r.names(); len(names) != 1 || names[0] != "bob" {
		t.Error(names)
	}
	r.clients[2].end()
	if names := r.names(); len(names) != 0 {
		t.Error(names)
	}
}
