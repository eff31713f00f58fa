/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Nested loop recognition (NLR): a stream of symbols becomes a sequence of symbols and loops that says the
 * same.
 *
 * DiffTrace (CLUSTER'19), section 3.3.1, Procedure 1, after Ketterlin and Clauss: symbols are pushed on a
 * stack; after each push, equal blocks on the top become a loop, and a loop whose body lies on it once more
 * counts it. docs/analysis.md says exactly what is folded when. Expanding the result gives the stream back
 * (nlr_expand).
 */
#ifndef TRACECTL_ANALYZER_LOOPS_NLR_H
#define TRACECTL_ANALYZER_LOOPS_NLR_H

#include "analyzer/loops/loop_table.h"

#define NLR_DEFAULT_BODY 10u
#define NLR_MAX_BODY 1000u
#define NLR_STRICT_REPEATS 3u
#define NLR_MAX_REPEATS 100u

struct nlr_options {
    uint32_t max_body; /* the paper's K: longest loop body, in elements; 1 to NLR_MAX_BODY */
    uint32_t repeats;  /* a loop forms after this many equal consecutive blocks; 2 to NLR_MAX_REPEATS */
};

struct nlr_builder;

/* The builder adds the bodies it finds to `table`, which must outlive it. Fails with -EINVAL (options out of
 * range) or -ENOMEM. Free with nlr_builder_free, which accepts NULL. */
int nlr_builder_new(struct loop_table *table, const struct nlr_options *options,
                    struct nlr_builder **ret_builder);
void nlr_builder_free(struct nlr_builder *builder);

/* Appends one element (nlr_symbol() for a symbol). Amortised a few nanoseconds; memory grows with the result
 * only. Fails with -ENOMEM or -EOVERFLOW (more than 2^32 elements); the element is not appended then, and the
 * builder is good for nlr_builder_free only. */
int nlr_builder_push(struct nlr_builder *builder, struct nlr_element element);

size_t nlr_builder_count(const struct nlr_builder *builder);

/* Hands over the sequence and leaves the builder empty, ready for the next stream. */
int nlr_builder_take(struct nlr_builder *builder, struct nlr_sequence *ret_sequence);

#endif
