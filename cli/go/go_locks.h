/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Potential deadlocks as text and as JSON (go locks, go check). */
#ifndef TRACECTL_CLI_GO_GO_LOCKS_H
#define TRACECTL_CLI_GO_GO_LOCKS_H

#include <jansson.h>

#include "analyzer/go/lock_order.h"
#include "analyzer/go/places.h"
#include "store/streams/go_events.h"

/* The potential deadlocks of a program. `ret_complete`: whether all orders of locks were looked at. Free
 * *ret_cycles with free(). */
int go_locks_of(struct tracestore *store, const struct go_program *program, struct go_places *places,
                struct lock_cycle **ret_cycles, size_t *ret_count, bool *ret_complete, struct error *err);

/* `label`: the process's number, P of P.gN. Both fail with what `places` says. */
int go_locks_text(const struct lock_cycle *cycle, const char *label, struct go_place_source places);
/* An object with `steps`; NULL: see above. */
json_t *go_locks_json(const struct lock_cycle *cycle, const char *label, struct go_place_source places);

#endif
