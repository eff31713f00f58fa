/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Filters: which functions, and whether returns, nested loop recognition gets to see.
 *
 * Table 3.1 of the dissertation and figure 7 of the DiffTrace draft, in two spellings:
 *   mpi,mem,!image:libc*
 *                       terms of filter_expression.h, separated by commas; and two words of a filter alone:
 *                       `plt` removes stubs unless a term keeps them, `!returns` keeps returns
 *   11.mem.ompcrit.cust.0K10
 *                       the papers': returns removed (1) or kept (0), stubs removed or kept, sets, the custom
 *                       expression, everything else kept too (1) or not (0), and NLR's K
 * A filter is asked once for each function, not for each event.
 */
#ifndef TRACECTL_ANALYZER_SYMBOLS_FILTER_H
#define TRACECTL_ANALYZER_SYMBOLS_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/symbols/filter_library.h"
#include "analyzer/symbols/filter_sets.h"

struct error;

struct filter;

/* Makes a filter of `spec` (NULL or "": everything) and a regular expression `custom` (NULL: none), functions
 * whose name matches anywhere being kept as well. Returns are dropped unless the spec says otherwise. Fails
 * with -EINVAL. Free with filter_free, which accepts NULL. */
int filter_new(const char *spec, const char *custom, struct filter **ret_filter, struct error *err);

/* The same with the sets of `library`, which must outlive the filter; several filters may share it. */
int filter_new_with(struct filter_library *library, const char *spec, const char *custom,
                    struct filter **ret_filter, struct error *err);
void filter_free(struct filter *filter);

/* A function as a filter sees it. */
struct filter_function {
    const char *name;      /* the catalog's, with "@plt" for stubs */
    const char *demangled; /* may be NULL */
    const char *image;     /* path of its image; NULL or "": unknown */
    const char *source;    /* path of its source file; NULL or "": unknown */
    char *const *aliases;  /* its other names, spelled as `name` is, up to a NULL; NULL: none */
};

/* All names of the function are asked: a term has it when it has one of them. Predefined sets look at names
 * as the image spells them, expressions of the user's at the demangled ones, too. */
bool filter_keeps(const struct filter *filter, const struct filter_function *function);

bool filter_keeps_returns(const struct filter *filter);

/* Whether the spec says something about returns or K, which is about reading traces, not about functions. */
bool filter_is_for_reading(const struct filter *filter);

/* The K of a papers' code, 0 when there is none. */
uint32_t filter_max_body(const struct filter *filter);

/* Whether the answer depends on the source file, so that it is worth looking up. */
bool filter_asks_source(const struct filter *filter);

/* Whether a term `image:GLOB` without '!' takes functions of this image; with a path of NULL, of any image.
 */
bool filter_takes_image(const struct filter *filter, const char *path);

#endif
