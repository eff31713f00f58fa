/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a thread's two histories part, call by call, and what kind of difference that is.
 *
 * A summary tells which entries differ; people ask for the last call that both runs made and the first one
 * that they did not. Both sequences are walked in step, as if expanded, but loops that are equal are passed
 * over whole.
 */
#ifndef TRACECTL_ANALYZER_DIFF_DIVERGENCE_H
#define TRACECTL_ANALYZER_DIFF_DIVERGENCE_H

#include "analyzer/diff/call_tally.h"

#define NO_LOOP UINT32_MAX

/* What the faulty run does, seen from the normal one. */
enum divergence_kind {
    DIVERGENCE_NONE,         /* no difference is known */
    DIVERGENCE_HANGS,        /* never came back from its last call; the normal run did, or went on */
    DIVERGENCE_HUNG_NORMAL,  /* the other way round */
    DIVERGENCE_STOPS,        /* ends where the normal run continues */
    DIVERGENCE_CONTINUES,    /* continues where the normal run ends */
    DIVERGENCE_LOOP_SHORTER, /* one loop, fewer iterations, and nothing else where they part */
    DIVERGENCE_LOOP_LONGER,
    DIVERGENCE_ORDER,   /* the same calls as often, in another order */
    DIVERGENCE_MISSING, /* calls are missing, none are new */
    DIVERGENCE_ADDED,   /* calls are new, none are missing */
    DIVERGENCE_OTHER,   /* both */
    DIVERGENCE_RENAMED, /* nothing but names of functions, by a guess (renames.h): verdict.c's finding */
};

struct divergence {
    enum divergence_kind kind;
    /* Where they part. Symbols are SYMBOL_DROPPED when there is none: at the start, at an end, and where it
     * is not known. */
    uint64_t common; /* calls up to there, equal in both; with returns kept, events */
    bool exact;      /* false: events are missing before that place, and `common` counts from behind them */
    uint32_t last_common, normal_next, faulty_next;
    uint32_t stuck;      /* the call that never returned, of the kinds that are about one */
    uint32_t loop;       /* the body of the innermost loop that one of them is in there, or NO_LOOP */
    bool loop_is_faulty; /* in which of the two runs */
    uint64_t iteration, iterations;      /* the one it is in, from 1 on, and all of them there */
    uint64_t normal_count, faulty_count; /* iterations, of the kinds DIVERGENCE_LOOP_... */
};

/* `thread` is on both sides, `tally` is scratch. Fails with -ENOMEM. */
int find_divergence(const struct loop_summary *summary, const struct thread_diff *thread,
                    struct call_tally *tally, struct divergence *ret_divergence);

/* "never returned", "loop ended early"...: a stable word for JSON. */
const char *divergence_kind_name(enum divergence_kind kind);

#endif
