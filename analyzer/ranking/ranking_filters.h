/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which filters are worth a place in the sweep of runs of which the user knows nothing. */
#ifndef TRACECTL_ANALYZER_RANKING_RANKING_FILTERS_H
#define TRACECTL_ANALYZER_RANKING_RANKING_FILTERS_H

#include "analyzer/loops/loop_summary.h"

/* Names of predefined sets that keep different functions of those that the runs called, "everything" first:
 * sets that keep none, or the same as one before, are left out. The array is the caller's to free, the names
 * are constants. */
int ranking_filters(const struct loop_source *sources, size_t runs, const char ***ret_names,
                    size_t *ret_count, struct error *err);

#endif
