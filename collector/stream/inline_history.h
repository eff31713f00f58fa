/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stretches of records that a thread's inline probes have made before, taken as one.
 *
 * A program repeats itself record for record: function, return address and stack pointer. Where the same open
 * calls come before the same record, the same follows (inline_paths.h), so where a whole stretch of records
 * comes again behind the same open calls, its events are those that it had, and the writer is given no more
 * than where they stand. Records that were followed one by one are kept here, without their ticks; a place to
 * compare with is found by the open calls and the next two records. Records that stand side by side here and
 * did not come so (a stretch was between) are compared as one only if the second one began with the open
 * calls that the first one left.
 *
 * What is found has been compared to the last bit: nothing here is guessed.
 */
#ifndef TRACECTL_COLLECTOR_STREAM_INLINE_HISTORY_H
#define TRACECTL_COLLECTOR_STREAM_INLINE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/arch/record.h"
#include "collector/stream/inline_paths.h"

/* Of one thread. */
struct inline_history {
    struct agent_record *records;
    uint32_t *steps;          /* of each: the step of inline_paths that it was */
    uint32_t *table;          /* numbers of records from 1 on, by what follows; 0: none */
    uint32_t count, capacity; /* of records; the table has twice as many */
    uint32_t next;            /* the record behind the last stretch */
    uint32_t first;           /* the number that the writer has kept record 0 by */
    uint64_t generation;      /* of the writer's numbers */
    uint64_t paths;           /* how often these had been forgotten when the steps were numbered */
    uint64_t served;          /* records that came in stretches since all was forgotten */
    uint32_t rest;            /* so many records are not kept */
    size_t *memory_left;      /* bytes that all threads together may still take */
    size_t memory;            /* of them taken here */
};

#define INLINE_HISTORY_MOST 32768u /* records of a thread */

/* Records that came before. */
struct inline_stretch {
    uint32_t first, count; /* numbers here; count 0: none */
    uint32_t last_step;    /* of inline_paths */
    struct kept_steps kept;
};

/* `memory_left` must live as long. */
void inline_history_init(struct inline_history *history, size_t *memory_left);
void inline_history_release(struct inline_history *history);
void inline_history_forget(struct inline_history *history);

/* Whether to keep what comes next, `count` records: threads that do not repeat themselves rest. To be called
 * before the others; all is forgotten when the paths were. */
bool inline_history_is_kept(struct inline_history *history, const struct inline_paths *paths, size_t count);

/* The stretch that the first of `records` are, on the stack of number `stack`. Short ones are none. */
struct inline_stretch inline_history_find(const struct inline_history *history,
                                          const struct inline_paths *paths, uint32_t stack,
                                          const struct agent_record *records, size_t count);

/* The stretch was taken as one. */
void inline_history_served(struct inline_history *history, const struct inline_stretch *stretch);

/* Records were followed one by one, and kept by the writer; `steps`: what each of them was. */
void inline_history_add(struct inline_history *history, const struct inline_paths *paths,
                        const struct agent_record *records, const uint32_t *steps,
                        const struct kept_steps *kept);

#endif
