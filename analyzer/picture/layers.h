/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where the boxes of a directed graph are drawn: in layers from top to bottom, by Graphviz's `dot`. */
#ifndef TRACECTL_ANALYZER_PICTURE_LAYERS_H
#define TRACECTL_ANALYZER_PICTURE_LAYERS_H

#include "analyzer/picture/svg.h"

struct layers_box {
    double width, height;
    struct svg_point centre; /* filled in */
};

struct layers_edge {
    size_t upper, lower; /* boxes */
    char *path;          /* filled in: the words of SVG's attribute d, from malloc */
};

/* Fills in what the layout decides, in pixels from the top left, and *ret_size. Time grows faster than the
 * graph: a hundred boxes take a few hundredths of a second. Fails with -ENOMEM, or -EIO when Graphviz is not
 * installed completely. Free the paths also after a failure. Not for several threads at once. */
int layers_place(struct layers_box *boxes, size_t box_count, struct layers_edge *edges, size_t edge_count,
                 struct svg_point *ret_size);

#endif
