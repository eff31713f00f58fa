/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A diffNLR side by side, at any width of the terminal. */
#ifndef TRACECTL_CLI_DIFF_DIFF_COLUMNS_H
#define TRACECTL_CLI_DIFF_DIFF_COLUMNS_H

#include "analyzer/diff/compare.h"

/* Names that did not fit, and what they stand for: different names are cut to different ones. */
struct cut_names {
    struct cut_name {
        char *full, *cut;
    } * names;
    size_t count, capacity;
};
void cut_names_release(struct cut_names *names);
void cut_names_print(const struct cut_names *names);

struct diff_columns {
    const struct loop_summary *summary;
    const struct diff_nlr *diff;
    const struct thread_loops *left, *right; /* the normal and the faulty side of `diff` */
    const char *left_title, *right_title;
    bool full;    /* no common entries are omitted */
    bool descend; /* the bodies of loops that differ are shown, too */
    bool colour;
    size_t width; /* of the line */
};

/* The width of the terminal on stdout; else $COLUMNS; else what fits on paper. */
size_t diff_columns_width(void);

/* Prints it on stdout and adds to `cut`. Fails with -ENOMEM. */
int diff_columns_print(const struct diff_columns *columns, struct cut_names *cut);

#endif
