// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A helper that shall live as long as the program ends in an empty select, and outlives the component that it was
// started for.
//
// want: leak 1
// always
// cause: channel
package main

type plugin struct {
	hooks int
}

func (p *plugin) host(loaded chan<- struct{}) {
	p.hooks = 3
	close(loaded)
	select {}
}

func keepAlive() {
	loaded := make(chan struct{})
	p := &plugin{}
	go p.host(loaded)
	<-loaded
}

func init() { programs["keep_alive"] = keepAlive }
