/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the tests of analyzer/ share: streams of symbols, made at random from a seed or written as text. */
#ifndef TRACECTL_TESTS_ANALYZER_STREAMS_H
#define TRACECTL_TESTS_ANALYZER_STREAMS_H

#include <stddef.h>
#include <stdint.h>

#include "analyzer/loops/nlr.h"

uint32_t random_below(uint64_t *seed, uint32_t limit);

/* A stream of up to `most` symbols below `symbols`: nested loops with noise, so that loops form, break off
 * and are nearly repeated. */
size_t random_stream(uint64_t *seed, uint32_t symbols, size_t most, uint32_t *stream);

/* Reduces with Procedure 1 (`repeats` equal blocks). */
struct nlr_sequence reduce(struct loop_table *table, uint32_t max_body, uint32_t repeats,
                           const uint32_t *stream, size_t count);
/* The same of a text, a letter a symbol ('A' is 1), '?' a lost place. */
struct nlr_sequence reduce_text(struct loop_table *table, const char *text);

/* "A L0^3 ?": loops by their id in the table, or by their number once they have one. Free it. */
char *sequence_text(const struct loop_table *table, const struct nlr_sequence *sequence);

/* Fails the test unless the sequence expands to the stream. */
void expect_expansion(const struct loop_table *table, const struct nlr_sequence *sequence,
                      const uint32_t *stream, size_t count);

#endif
