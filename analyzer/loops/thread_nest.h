/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The loops of one thread, by Procedure 1 alone over its calls (nlr.h), each with its place in the stream.
 *
 * A row is a loop in the thread's summary, or, inside such a loop, one in its body: of that the first run is
 * meant, the one in the first iteration of all loops around it. Outer loops come before the inner ones.
 *
 * Procedure 1 alone, and not the two-block rule that `tracectl nlr` applies after it: that rule looks at all
 * threads of a run, and what a thread's rows are must not depend on which threads a query asks for.
 */
#ifndef TRACECTL_ANALYZER_LOOPS_THREAD_NEST_H
#define TRACECTL_ANALYZER_LOOPS_THREAD_NEST_H

#include "analyzer/loops/nlr.h"
#include "store/segment/event_iter.h"

struct nest_loop {
    struct nlr_element element;     /* of kind NLR_LOOP */
    uint32_t level;                 /* loops around it */
    uint64_t first_call, last_call; /* of the thread's calls, counted from 0 */
    uint64_t seq, end_seq;          /* of these calls; nest_place fills in this and what follows */
    uint64_t ns, end_ns;            /* 0: the run kept no times */
};

/* A nest of zeros is empty. nest_release gives its memory back and leaves it empty. */
struct thread_nest {
    struct loop_table table;
    struct nest_loop *loops;
    size_t count, capacity;
};

void nest_release(struct thread_nest *nest);

/* Reads a stream to its end and replaces what is in the nest. Memory is bounded by the summary and the rows.
 * Options out of range: -EINVAL. */
int nest_read(struct thread_nest *nest, struct event_iter *iter, const struct nlr_options *options,
              struct error *err);

/* Reads the same stream once more, from its beginning, to find where the loops are. */
int nest_place(struct thread_nest *nest, struct event_iter *iter, struct error *err);

/* The function that a loop's body begins with. */
uint32_t nest_first_function(const struct thread_nest *nest, const struct nest_loop *loop);

#endif
