/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The locks of threads for the search of orders that do not fit together (analyzer/locks/lock_order.h):
 * mutexes, read-write locks and spin locks, out of the synchronisation events of a process.
 *
 * Trying, and waiting for a limited time, takes locks and waits for none. A condition that is waited for
 * gives its mutex up and takes it again. A reader that reads again is no danger: glibc's locks let it in
 * before a writer that waits, unless they are told otherwise. A lock is known by its address: where memory is
 * used again for another one, they are taken for one.
 */
#ifndef TRACECTL_ANALYZER_LOCKS_THREAD_LOCKS_H
#define TRACECTL_ANALYZER_LOCKS_THREAD_LOCKS_H

#include <stdbool.h>

#include "analyzer/locks/lock_order.h"
#include "store/streams/sync_events.h"

/* The potential deadlocks of a process; agents are threads, by the T of their labels. `ret_complete`: no
 * event was lost, and all orders of locks were looked at. Free *ret_cycles with free(). */
int thread_locks_cycles(struct tracestore *store, int64_t process_id, struct lock_cycle **ret_cycles,
                        size_t *ret_count, bool *ret_complete, struct error *err);

#endif
