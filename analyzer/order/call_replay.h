/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where in a function a thread is, and how often its loops went round, from the calls that the function has
 * made.
 *
 * A recording has of each call the function, and not where it was called from (unless it was asked to keep
 * that). But a function's code says which calls can follow on which: the row of calls of one activation is a
 * way through its flow graph. So the ways are followed, all that fit the calls so far at once; each knows at
 * which call it stands and how many iterations of the loops around it are finished. Where two ways meet at a
 * call with different numbers, the number is not known from then on; where ways stand at different calls at
 * the end, the place is not known; and where none fits, nothing is.
 *
 * Calls that cannot be told apart are any call: through pointers; of functions that were not recorded, which
 * may call recorded ones in turn; and what follows a call by a jump (a tail call) is recorded beside it.
 */
#ifndef TRACECTL_ANALYZER_ORDER_CALL_REPLAY_H
#define TRACECTL_ANALYZER_ORDER_CALL_REPLAY_H

#include "analyzer/order/code.h"
#include "analyzer/order/relative_progress.h"

/* What the recording has of a function that is called by `address`: its id in the store, or one of these. */
#define REPLAY_NOT_RECORDED 0u   /* may have run unseen, and called others */
#define REPLAY_SILENT UINT32_MAX /* cannot have called anything that was recorded, or was never called */

typedef uint32_t (*replay_lookup)(void *context, uint32_t image, uint64_t address);

struct replay_map;
struct replay;

/* The calls of `function`, which has a graph, and the ways between them; borrows it, and `code`. -ENOMEM. */
int replay_map_new(struct order_code *code, const struct order_function *function, replay_lookup lookup,
                   void *context, struct replay_map **ret_map);
void replay_map_free(struct replay_map *map);

/* An activation that has made no call yet. `map` is borrowed. -ENOMEM. */
int replay_new(const struct replay_map *map, struct replay **ret_replay);
void replay_free(struct replay *replay);

/* It has called the function with that id, from the call that returns to `return_address` (0: not known). */
void replay_call(struct replay *replay, uint32_t function, uint64_t return_address);

/* Something is missing: from now on nothing is known. */
void replay_lose(struct replay *replay);

/* The address of the call that was made last, and the finished iterations of the loops around it in
 * *ret_point. -ENOENT: not known. */
int replay_point(const struct replay *replay, struct order_point *ret_point);

#endif
