/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All sets that a filter can name: the predefined ones, and those of a file of the user's.
 *
 * The file has a set on each line, `name = terms`, where the terms are those of filter_expression.h and may
 * name sets of the lines above, so that sets never go round in a circle. Empty lines and lines that begin
 * with
 * '#' say nothing.
 *
 *     # what the solver does by itself
 *     solver = source:src/solver/, !alloc
 *     talk   = mpicol, /^exchange_/
 */
#ifndef TRACECTL_ANALYZER_SYMBOLS_FILTER_LIBRARY_H
#define TRACECTL_ANALYZER_SYMBOLS_FILTER_LIBRARY_H

#include "analyzer/symbols/filter_expression.h"

#define FILTER_MOST_SETS 1000u /* predefined ones included */

struct filter_library_set {
    char *name;
    const char *definition; /* of a predefined set, until it is compiled; else NULL */
    struct filter_expression expression;
    unsigned line; /* in the user's file, 0: predefined */
};

/* Read freely. A set uses only sets with smaller numbers. */
struct filter_library {
    struct filter_library_set *sets;
    size_t count, capacity;
};

/* The predefined sets. Free with filter_library_free, which accepts NULL, when no filter uses it any more. */
int filter_library_new(struct filter_library **ret_library, struct error *err);
void filter_library_free(struct filter_library *library);

/* Adds the sets of a file. -EINVAL: a line is wrong, and the error names it; -ENOENT and others: it cannot be
 * read. The library is good for filter_library_free only then. */
int filter_library_read(struct filter_library *library, const char *path, struct error *err);

/* The same of a text of `size` bytes; `path` is for the error. */
int filter_library_parse(struct filter_library *library, const char *path, const char *text, size_t size,
                         struct error *err);

/* The set that a word names, among those that the context may use. -EINVAL: there is none. */
int filter_library_find(const struct filter_context *context, const char *name, size_t length,
                        size_t *ret_set, struct error *err);

/* Whether the function is in a set; `subject->in_set` has the answers for the sets that it uses. */
bool filter_library_has(const struct filter_library *library, size_t set,
                        const struct filter_subject *subject);

#endif
