/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reports of cascades: made from what the search found, and said in words. */
#ifndef TRACECTL_ANALYZER_CASCADE_REPORT_H
#define TRACECTL_ANALYZER_CASCADE_REPORT_H

#include <stdio.h>

#include "analyzer/cascade/cascade.h"
#include "analyzer/cascade/recorded_run.h"

/* Fills in all but `growth`, `times` and `runs`, which are the caller's; `growth` must be there. -ENOMEM;
 * release in any case. */
int cascade_report_make(struct cascade_report *report, const struct recorded_run *run,
                        const struct found_cascade *found);
void cascade_report_release(struct cascade_report *report);

/* "copy_file (store.c:41)" */
void cascade_place_print(FILE *out, const struct cascade_place *place);

/* The report in a sentence, without an end of the line. */
void cascade_report_sentence(FILE *out, const struct cascade_report *report);

/* A link in words: "send_heartbeat (node.c:90) waits for the lock that copy_file (store.c:41) holds". */
void cascade_link_sentence(FILE *out, const struct cascade_report_link *link);

/* Why the loop is a source, with the counts: "ends when what it reads says so; 4, 16 iterations at sizes 4,
 * 16: linear". */
void cascade_growth_sentence(FILE *out, const struct loop_growth *growth, const uint64_t *sizes, size_t runs);

/* What to make larger to see it. */
void cascade_advice(FILE *out, const struct cascade_report *report);

#endif
