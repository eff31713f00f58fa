// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build !fixed

// Every session has a context and a goroutine that cleans up when it is cancelled. A session that is refused
// returns early, and its cancel function is never called.
//
// want: leak 1
// always
// cause: channel & context
package main

import (
	"context"
	"errors"
)

type session struct {
	user   string
	cancel context.CancelFunc
}

type sessions struct {
	open    map[string]*session
	cleaned chan string
}

func (s *sessions) login(ctx context.Context, user string) (*session, error) {
	ctx, cancel := context.WithCancel(ctx)
	next := &session{user: user, cancel: cancel}
	go func() {
		<-ctx.Done()
		s.cleaned <- user
	}()
	if _, again := s.open[user]; again {
		return nil, errors.New("already logged in")
	}
	s.open[user] = next
	return next, nil
}

func forgottenCancel() {
	s := &sessions{open: map[string]*session{}, cleaned: make(chan string, 8)}
	first, _ := s.login(context.Background(), "ann")
	_, _ = s.login(context.Background(), "ann")
	first.cancel()
	<-s.cleaned
}

func init() { programs["forgotten_cancel"] = forgottenCancel }
