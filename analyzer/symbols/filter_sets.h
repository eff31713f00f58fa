/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The predefined sets of functions: table 3.1 of the dissertation, figure 7 of the DiffTrace draft, and what
 * else people ask for by name. */
#ifndef TRACECTL_ANALYZER_SYMBOLS_FILTER_SETS_H
#define TRACECTL_ANALYZER_SYMBOLS_FILTER_SETS_H

/* A name of NULL ends the table. */
struct filter_set {
    const char *name;
    const char *definition; /* in the language of filters (filter_expression.h), of the sets above it; its
                               expressions look at the name as the image spells it, without "@plt". NULL: a
                               word of the language itself, or one that only a whole filter can have */
    const char *summary;
};

extern const struct filter_set filter_sets[];

#endif
