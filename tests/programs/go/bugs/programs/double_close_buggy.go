// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// A connection is closed by the handler of an error and again by the general clean-up: the second close of its
// channel is a panic.
//
// want: crash
// always
// cause: channel
package main

import "errors"

var errReset = errors.New("reset by peer")

type connection struct {
	closed chan struct{}
	reader chan struct{}
}

func dial() *connection {
	c := &connection{closed: make(chan struct{}), reader: make(chan struct{})}
	go func() {
		<-c.closed
		close(c.reader)
	}()
	return c
}

func (c *connection) shut() {
	close(c.closed)
}

func (c *connection) exchange() error {
	err := errReset
	if err != nil {
		c.shut()
	}
	return err
}

func doubleClose() {
	c := dial()
	defer func() { <-c.reader }()
	defer c.shut()
	if c.exchange() == nil {
		return
	}
}

func init() { programs["double_close"] = doubleClose }
