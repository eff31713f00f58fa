// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build fixed

// As forgotten_cancel_buggy, but the context of a session that is refused is cancelled.
package main

import (
	"context"
	"errors"
	"sync"
)

type session struct {
	user   string
	cancel context.CancelFunc
}

type sessions struct {
	open     map[string]*session
	cleaned  chan string
	cleaners sync.WaitGroup
}

func (s *sessions) login(ctx context.Context, user string) (*session, error) {
	ctx, cancel := context.WithCancel(ctx)
	next := &session{user: user, cancel: cancel}
	s.cleaners.Add(1)
	go func() {
		defer s.cleaners.Done()
		<-ctx.Done()
		s.cleaned <- user
	}()
	if _, again := s.open[user]; again {
		next.cancel()
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
	s.cleaners.Wait()
}

func init() { programs["forgotten_cancel"] = forgottenCancel }
