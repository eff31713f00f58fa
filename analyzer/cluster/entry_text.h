/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Entries of summaries, bodies of loops and attributes as people read them. */
#ifndef TRACECTL_ANALYZER_CLUSTER_ENTRY_TEXT_H
#define TRACECTL_ANALYZER_CLUSTER_ENTRY_TEXT_H

#include "analyzer/cluster/attributes.h"
#include "analyzer/loops/loop_summary.h"

/* "L1 ^ 16", a function's name, or "?" for lost events. In memory from malloc; NULL: none left. */
char *entry_text(const struct loop_summary *summary, const struct nlr_element *element);

/* "MPI_Send MPI_Recv": what one iteration of a loop does. In memory from malloc; NULL: none left. */
char *loop_body_text(const struct loop_summary *summary, uint32_t loop);

/* "MPI_Init", "L0:16", "MPI_Init -> L0:10-99" in a buffer of the caller's; cut to fit. */
void attribute_text(const struct loop_summary *summary, const struct attribute *attribute, char *text,
                    size_t size);

#endif
