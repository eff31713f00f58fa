/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Import of Chrome's trace event format, JSON: an array of events, or an object whose `traceEvents` is one.
 *
 * A call is a pair of B and E, or an X with its duration; a pair (pid, tid) is a thread. Events may come in
 * any order: they are sorted by time, those of one moment as the file has them, X behind the others and the
 * longer ones first. What else is read:
 *
 *   M                `process_name`, `thread_name`
 *   i, I             of a thread without any B, E and X: a call, of which no return is known; `[lost]` and
 *                    `[not observed]`, as export_chrome.c writes them, are losses
 *   args             `state`: "unknown" and `nesting`: "assumed", as export_chrome.c writes them
 *   otherData        `started_ns`: when time 0 was, in ns since 1970; else the last event is taken to be now
 *
 * An E without its B is a loss of a call and its return. An X that outlasts the call around it ends with it,
 * and a B that outlasts an X ends with that; the thread's returns count as inferred then. Other kinds of
 * events are passed over.
 */
#ifndef TRACESTORE_IMPORT_CHROME_H
#define TRACESTORE_IMPORT_CHROME_H

#include <stdio.h>

#include "store/api/tracestore.h"

struct chrome_plan;

/* Reads and checks the whole file; its events wait in a temporary file of SQLite's, so that memory does not
 * grow with them. -EBADMSG: it is no such trace, and the message says which event is wrong. */
int chrome_plan_new(const char *path, struct chrome_plan **ret_plan, struct error *err);
/* The same of a file that is open; `path` is its name, for messages. */
int chrome_plan_read(FILE *in, const char *path, struct chrome_plan **ret_plan, struct error *err);

/* Makes a run of it. `name` NULL: the file's. `demangle` may be NULL; it returns memory from malloc, or NULL
 * for names that need nothing. After a failure there is no run. */
int chrome_plan_write(struct chrome_plan *plan, struct tracestore *store, const char *name,
                      char *(*demangle)(const char *name), int64_t *ret_run_id, struct error *err);

void chrome_plan_free(struct chrome_plan *plan);

#endif
