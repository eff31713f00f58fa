/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which functions events name, and how often they are called: what `segments.functions` has to say of those
 * of a segment, and sums of that. */
#ifndef TRACESTORE_CENSUS_H
#define TRACESTORE_CENSUS_H

#include "store/segment/segment.h"

/* Zero-initialised: empty. */
struct census {
    struct function_calls *table; /* open addressing; function 0: a free slot */
    size_t table_size, count;     /* a power of two, or 0; slots taken */
    uint64_t events, calls;       /* of all functions */
};

/* Takes an event in. -ENOMEM. */
int census_add(struct census *census, const struct event *event);

/* Takes calls of a function (not 0) in that were counted elsewhere; `events` does not change. -ENOMEM. */
int census_add_calls(struct census *census, uint32_t function, uint64_t calls);

/* The entry of a function; NULL: no event names it. */
const struct function_calls *census_find(const struct census *census, uint32_t function);

/* Its functions with their calls, in ascending order, to `ret_functions`, which has room for `count`. */
void census_list(const struct census *census, struct function_calls *ret_functions);

/* Empties it; keeps the memory. */
void census_clear(struct census *census);
void census_release(struct census *census);

/* Decodes a segment to its last bit and takes all its events in. -EBADMSG, -ENOTSUP, -ENOMEM. */
int census_take(struct census *census, const struct segment_parts *parts, uint64_t first_seq,
                uint64_t event_count);

#define AUTO_CENSUS __attribute__((cleanup(census_release))) struct census

#endif
