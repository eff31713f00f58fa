/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Goroutine events to test with: random ones of every shape, and a program that does what programs do. */
#ifndef TESTS_STORE_GO_FIXTURE_H
#define TESTS_STORE_GO_FIXTURE_H

#include "fixture.h"
#include "store/streams/go_events.h"

/* Any event that can be written, from a generator; its time is not before `ns`. */
struct process_event go_event_random(struct generator *generator, uint64_t ns);

/*
 * Pairs of producers and consumers over channels, each item under a mutex, and waits and wakes between them,
 * on a few threads; goroutines are 1 (the main one) to 2 * `pairs` + 1. Appends `count` events to `events`.
 */
void go_events_of_program(struct generator *generator, unsigned pairs, struct process_event *events,
                          size_t count);

bool go_event_same(const struct process_event *a, const struct process_event *b);

/* Makes the fixture's process a Go program. */
struct process_writer *fixture_go_program(struct fixture *fixture);

/* Reads the process and expects these events, then the end. */
void expect_go_events(struct tracestore *store, int64_t process_id, const struct process_event *events,
                      size_t count);

#endif
