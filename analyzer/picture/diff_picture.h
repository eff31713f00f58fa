/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * diffNLR as a picture (DiffTrace, figures 3.6 to 3.8 of the dissertation): a main stem of what both runs do,
 * and left and right of it what only one of them does. What a block is shows by its place, its sign, its
 * border and its colour; any one of these would do.
 */
#ifndef TRACECTL_ANALYZER_PICTURE_DIFF_PICTURE_H
#define TRACECTL_ANALYZER_PICTURE_DIFF_PICTURE_H

#include "analyzer/diff/compare.h"
#include "analyzer/picture/svg.h"

struct diff_picture {
    const struct loop_summary *summary;
    const struct run_comparison *comparison;
    const size_t *threads; /* indices in the comparison, in the order to be drawn */
    size_t count;
    const char *normal_name, *faulty_name;
    bool full; /* no common entries are left out */
};

/* The whole picture as a document: the threads below each other, the signs explained, the loops spelled out.
 * In memory from malloc; NULL: there was not enough. */
char *diff_picture_svg(const struct diff_picture *picture);

/* One matched thread's blocks with their top left corner at `at`, for a picture that has more. *ret_size is
 * the room they take. Fails with -ENOMEM. */
int diff_picture_draw(struct svg *svg, struct svg_point at, const struct loop_summary *summary,
                      const struct thread_diff *thread, bool full, struct svg_point *ret_size);

/* The hatch that blocks of the unknown are filled with: once in a document, before them. */
void diff_picture_prepare(struct svg *svg);

#endif
