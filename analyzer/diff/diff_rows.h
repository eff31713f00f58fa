/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A difference as rows of two columns, for text and pictures: what stands next to what. */
#ifndef TRACECTL_ANALYZER_DIFF_DIFF_ROWS_H
#define TRACECTL_ANALYZER_DIFF_DIFF_ROWS_H

#include "analyzer/diff/diff_nlr.h"

#define DIFF_NO_ENTRY SIZE_MAX

enum diff_row_kind {
    ROW_COMMON,
    ROW_CHANGED,
    ROW_UNKNOWN,
    ROW_FOLDED, /* common entries that are left out */
};

struct diff_row {
    enum diff_row_kind kind;
    size_t normal,
        faulty;    /* entries of the two sequences, or DIFF_NO_ENTRY; of a folded row the first ones */
    size_t folded; /* entries left out */
    const struct diff_loop *loop; /* borrowed from the difference: this row is that pair of loops */
};

struct diff_rows {
    struct diff_row *rows;
    size_t count, capacity;
};

/* Of a longer common stretch `context` entries stay next to a change (SIZE_MAX: all stay). In a changed block
 * paired loops share a row, and what lies between two pairs is laid side by side in its order. Fails with
 * -ENOMEM. Release what a success returned. */
int diff_rows(const struct diff_nlr *diff, size_t context, struct diff_rows *ret_rows);
void diff_rows_release(struct diff_rows *rows);

#endif
