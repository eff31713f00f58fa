/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Filters: which functions, and whether returns, nested loop recognition gets to see.
 *
 * Table 3.1 of the dissertation and figure 7 of the DiffTrace draft, in two spellings:
 *   mpi,mem             names of predefined sets, separated by commas; what is kept is their union
 *   11.mem.ompcrit.cust.0K10
 *                       the papers': returns removed (1) or kept (0), stubs removed or kept, sets, the custom
 *                       expression, everything else kept too (1) or not (0), and NLR's K
 * A filter is asked once for each function, not for each event.
 */
#ifndef TRACECTL_ANALYZER_FILTER_H
#define TRACECTL_ANALYZER_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A predefined set, for help texts; a name of NULL ends the table. */
struct filter_set {
    const char *name;
    const char *expression; /* extended regular expression over the name without "@plt"; NULL: see filter.c */
    const char *summary;
};

extern const struct filter_set filter_sets[];

struct filter;

/* Makes a filter of `spec` (NULL or "": everything) and a regular expression `custom` (NULL: none), functions
 * whose name matches anywhere being kept as well. Returns are dropped unless the spec is a papers' code that
 * begins with 0. Fails with -EINVAL. Free with filter_free, which accepts NULL. */
int filter_new(const char *spec, const char *custom, struct filter **ret_filter, struct error *err);
void filter_free(struct filter *filter);

/* `name` is the catalog's, with "@plt" for stubs. Its demangled form may be given too: sets look at the name
 * as the image spells it, the custom expression at both. */
bool filter_keeps(const struct filter *filter, const char *name, const char *demangled);

bool filter_keeps_returns(const struct filter *filter);

/* The K of a papers' code, 0 when there is none. */
uint32_t filter_max_body(const struct filter *filter);

#endif
