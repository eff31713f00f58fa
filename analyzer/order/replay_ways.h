/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to analyzer/order/: the calls of a function and the ways from each to the next. */
#ifndef TRACECTL_ANALYZER_ORDER_REPLAY_WAYS_H
#define TRACECTL_ANALYZER_ORDER_REPLAY_WAYS_H

#include "analyzer/order/call_replay.h"

struct replay_site {
    uint64_t return_address;
    uint32_t block;
    uint32_t function; /* id of what is called; where it is anything, 0 */
    bool anything;     /* any function, and any number of them */
    uint32_t depth;    /* of the loops around, no more than ORDER_LOOPS_MAX */
    uint32_t *jumps;   /* ids of functions that what is called may jump to, and that are recorded beside it */
    size_t jump_count, jump_capacity;
};

/* How often a loop went round on a way without calls. */
struct replay_turns {
    enum {
        TURNS_MORE,
        TURNS_ENTERED,
        TURNS_UNKNOWN
    } kind; /* since the last call; since the loop was entered */
    uint32_t count;
};

struct replay_way {
    uint32_t to;                                /* number of a site */
    struct replay_turns turns[ORDER_LOOPS_MAX]; /* of the loops around that */
};

struct replay_map {
    const struct flow_graph *graph;
    struct replay_site *sites; /* sorted by address */
    uint32_t site_count;
    size_t site_capacity;
    struct replay_way *ways; /* those from the entry, then those from each site */
    size_t way_count, way_capacity;
    size_t *first_way; /* from the entry: 0; from site i: i + 1 */
};

/* Whether a call of `function` may be recorded beside the one that was made at the site, and while that
 * stands there. */
static inline bool replay_site_goes_on(const struct replay_site *site, uint32_t function)
{
    for (size_t i = 0; i < site->jump_count; i++)
        if (site->jumps[i] == function)
            return true;
    return site->anything;
}

#endif
