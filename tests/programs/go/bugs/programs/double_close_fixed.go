// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As double_close_buggy, but a Once closes.
package main

import (
	"errors"
	"sync"
)

var errReset = errors.New("reset by peer")

type connection struct {
	closed chan struct{}
	once   sync.Once
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
	c.once.Do(func() { close(c.closed) })
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
