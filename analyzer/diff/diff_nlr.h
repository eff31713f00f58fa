/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * diffNLR: how the loop structure of a thread differs between two runs (DiffTrace, section 3.2.7.1).
 *
 * The shortest edit between two summaries, as blocks that are common, normal only or faulty only. Loops of
 * one body that ran a different number of times are entries of a normal and a faulty block, and are listed as
 * the same loop besides; so are loops whose bodies differ a little. Where events are missing nothing is a
 * difference: the block around such a place is unknown.
 */
#ifndef TRACECTL_ANALYZER_DIFF_DIFF_NLR_H
#define TRACECTL_ANALYZER_DIFF_DIFF_NLR_H

#include "analyzer/loops/loop_table.h"

enum diff_op { DIFF_COMMON, DIFF_NORMAL, DIFF_FAULTY, DIFF_UNKNOWN };

/* Entries [normal, normal + normal_count) and [faulty, faulty + faulty_count) of the two sequences. A common
 * edit has as many of both, a normal or faulty one has 0 of the other, an unknown one has whatever lies
 * between the common entries around the lost events. */
struct diff_edit {
    enum diff_op op;
    size_t normal, normal_count, faulty, faulty_count;
};

/* A loop of a normal and one of the faulty edit behind it that are the same loop, 16 times -> 7 times, or
 * that resemble each other; the places are those of the entries in the two sequences. */
struct diff_loop {
    size_t normal, faulty;
    bool same;         /* one body */
    double similarity; /* of what they call (loop_pairs.h) */
};

struct diff_nlr {
    struct diff_edit *edits; /* in order; between two common ones normal comes first */
    size_t edit_count, edit_capacity;
    struct diff_loop *loops; /* in order */
    size_t loop_count, loop_capacity;
    size_t changed;  /* entries in normal and faulty edits */
    size_t compared; /* entries on both sides, without those in unknown edits */
    size_t unknown;  /* unknown edits */
};

/* One side: a thread's summary, and whether events of it may be missing at places that nobody knows (a loss
 * whose thread or place was not recorded). What only the other side has may then be missing for that reason:
 * unknown. */
struct diff_side {
    const struct nlr_sequence *loops;
    bool incomplete;
};

/* Both sequences use `table`. Fails with -ENOMEM. Release what a success returned. */
int diff_nlr(const struct loop_table *table, const struct diff_side *normal, const struct diff_side *faulty,
             struct diff_nlr *ret_diff);
void diff_nlr_release(struct diff_nlr *diff);

/* Edit *at; a normal one and the faulty one behind it as one, of op DIFF_NORMAL: *at is then the latter's. */
static inline struct diff_edit diff_nlr_block(const struct diff_nlr *diff, size_t *at)
{
    struct diff_edit block = diff->edits[*at];

    if (block.op == DIFF_NORMAL && *at + 1 < diff->edit_count && diff->edits[*at + 1].op == DIFF_FAULTY)
        block.faulty_count = diff->edits[++*at].faulty_count;
    return block;
}

/* The body of a loop as a sequence, borrowed from the table: not to be freed. */
static inline struct nlr_sequence loop_body_sequence(const struct loop_table *table, uint32_t id)
{
    return (struct nlr_sequence){table->elements + table->bodies[id].first, table->bodies[id].length};
}

/* How the bodies of two loops differ. As diff_nlr otherwise. */
int diff_nlr_bodies(const struct loop_table *table, uint32_t normal, uint32_t faulty,
                    struct diff_nlr *ret_diff);

#endif
