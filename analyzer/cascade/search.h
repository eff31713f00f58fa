/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cascading analysis (PCatch, section 4.2, algorithm 1): from the sink backwards, over what it may have
 * to wait for and what must come before, to the loops that could delay it.
 *
 * A region is a stretch of a line. From each region lead
 *   - contentions: at each locking and each beginning of a handler, to the sections that may delay it;
 *   - causes: at each event with a cause in another line, to what happened there before the cause and not
 *     before the region began. Of these at most `must_hops` are in a chain. A thread that receives without
 *     blocking waits for nobody unless it has polled in the region.
 * A loop inside a region, of a chain with at least one contention, that is concurrent with the end of the
 * sink, is the source of a cascade.
 */
#ifndef TRACECTL_ANALYZER_CASCADE_SEARCH_H
#define TRACECTL_ANALYZER_CASCADE_SEARCH_H

#include "analyzer/cascade/contention.h"
#include "analyzer/cascade/frames.h"

struct search_options {
    unsigned must_hops; /* the paper has 2 */
    bool concurrency;   /* sections must be concurrent to delay each other; false: an ablation */
};

/* The paper's threshold, and ours for contentions; regions that are looked at for one run. */
enum { SEARCH_MUST_HOPS = 2, SEARCH_MOST_LINKS = 8, SEARCH_MOST_REGIONS = 200000, SEARCH_SINKS = 8 };

/* One link of a chain, towards the source: the event `waits` had to wait for `delays`. */
struct cascade_link {
    bool contention;
    enum hb_edge_kind edge; /* of a cause */
    uint32_t resource;      /* of a contention */
    uint32_t waits;         /* in the region nearer to the sink */
    uint32_t delays;        /* the beginning of the rival section; or the cause */
};

struct found_cascade {
    uint32_t loop;                                /* in frames.loops */
    uint32_t sink;                                /* in frames.sinks */
    struct cascade_link links[SEARCH_MOST_LINKS]; /* from the sink to the source */
    size_t count;
};

struct found_cascades {
    struct found_cascade *cascades;
    size_t count, capacity;
    uint64_t regions; /* that were looked at */
    bool complete;    /* false: there were more than SEARCH_MOST_REGIONS */
};

/* What the search goes over. */
struct search_input {
    const struct cascade_trace *trace;
    const struct causality *causality;
    const struct contention *contention;
    const struct frames *frames;
};

/* Whether a loop can be a source at all; `section` says that the region is one of a contention, in which
 * mere waiting holds something up. */
typedef bool search_source(const void *context, const struct timed_loop *loop, bool section);

/* Of the sink's calls SEARCH_SINKS of each thread are looked at, spread over all. -ENOMEM; release in any
 * case. */
int search_cascades(const struct search_input *input, const struct search_options *options,
                    search_source *is_source, const void *context, struct found_cascades *ret_found);
void found_cascades_release(struct found_cascades *found);

#endif
