/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What options ask for by name, piece by piece, and which pieces nothing has met: each alternative of a
 * regular expression, each glob of a list, each term of a filter. '^(puts|fopen|no_such)$' selects two
 * functions, and no_such must be reported as unmatched.
 */
#ifndef TRACECTL_CLI_COMMON_ASKED_H
#define TRACECTL_CLI_COMMON_ASKED_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

struct error;

struct filter;
struct filter_library;

struct asked_piece {
    const char *option; /* "--functions" */
    char *text;         /* for people: the alternative, the glob or the term alone */
    bool met;
    bool has_regex;
    regex_t regex;         /* of an alternative, with what surrounds all of them */
    struct filter *filter; /* of a term; NULL: none */
};

/* All zero asks for nothing. */
struct asked {
    struct asked_piece *pieces;
    size_t count, capacity;
};

void asked_release(struct asked *asked);

/* Each replaces what the same option asked for before. `option` is borrowed. The expression is a valid POSIX
 * extended one. -ENOMEM. */
int asked_expression(struct asked *asked, const char *option, const char *expression, struct error *err);
int asked_globs(struct asked *asked, const char *option, const char *list, struct error *err);

/* The terms of a filter without '!', which use the sets of `library`; it must outlive `asked`. */
int asked_filter(struct asked *asked, const char *option, const char *spec, struct filter_library *library,
                 struct error *err);

enum asked_kind { ASKED_FUNCTIONS, ASKED_IMAGES };

/* "--functions 'puts', 'fclose', --filter 'mpi'": what nothing has met, or with `all` everything that was
 * asked for. NULL: there is none, or no memory. The caller frees it. */
char *asked_text(const struct asked *asked, enum asked_kind kind, bool all);

#endif
