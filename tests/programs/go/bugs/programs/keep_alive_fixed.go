// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As keep_alive_buggy, but the goroutine waits for the end instead.
package main

type plugin struct {
	hooks    int
	unload   chan struct{}
	unloaded chan struct{}
}

func (p *plugin) host(loaded chan<- struct{}) {
	defer close(p.unloaded)
	p.hooks = 3
	close(loaded)
	<-p.unload
}

func keepAlive() {
	loaded := make(chan struct{})
	p := &plugin{unload: make(chan struct{}), unloaded: make(chan struct{})}
	go p.host(loaded)
	<-loaded
	close(p.unload)
	<-p.unloaded
}

func init() { programs["keep_alive"] = keepAlive }
