/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an answer depends on: the state of the store, or of the runs that it is about. */
#ifndef TRACECTL_CLI_SERVE_STAMPS_H
#define TRACECTL_CLI_SERVE_STAMPS_H

#include <stdint.h>

struct error;
struct stamps;

/* Opens the store, for reading. Free with stamps_free, which accepts NULL. For several threads. */
int stamps_new(const char *store, struct stamps **ret_stamps, struct error *err);
void stamps_free(struct stamps *stamps);

/* Changes with each commit into the store, and when another file takes its place. */
uint64_t stamps_store(struct stamps *stamps);

/* The same of `count` runs: those that have ended stay as they are, whatever else is recorded. */
uint64_t stamps_runs(struct stamps *stamps, const int64_t *runs, int count);

#endif
