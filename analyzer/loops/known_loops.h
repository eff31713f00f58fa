/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Loops of two iterations, where the body is a loop elsewhere. */
#ifndef TRACECTL_ANALYZER_LOOPS_KNOWN_LOOPS_H
#define TRACECTL_ANALYZER_LOOPS_KNOWN_LOOPS_H

#include "analyzer/loops/nlr.h"

/* The two-block rule: a loop forms after two equal consecutive blocks when its body is in the table already.
 * Rewrites `sequences` until nothing changes; what becomes of a sequence depends on its elements and on the
 * set of bodies that all sequences have, not on the order of the sequences. */
int known_loops_apply(struct loop_table *table, const struct nlr_options *options,
                      struct nlr_sequence *const *sequences, size_t count);

#endif
