/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A dendrogram as a picture: the leaves below each other on the left, the merge of everything on the right,
 * and a scale of the distances under it. */
#ifndef TRACECTL_ANALYZER_PICTURE_DENDROGRAM_PICTURE_H
#define TRACECTL_ANALYZER_PICTURE_DENDROGRAM_PICTURE_H

#include <stdbool.h>

#include "analyzer/cluster/dendrogram.h"

struct dendrogram_picture {
    const struct dendrogram *dendrogram;
    const char *const *names; /* of the objects */
    const bool *marked;       /* objects whose leaves get a mark, or NULL: none */
    size_t most;              /* leaves, at least 1: in larger trees the lowest merges are not drawn */
    const char *title, *description;
};

/* An element of a page. *ret_undrawn merges were left out: what they bring together shares a leaf. In memory
 * from malloc; NULL: there was not enough. */
char *dendrogram_svg(const struct dendrogram_picture *picture, size_t *ret_undrawn);

#endif
