/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Flame graphs (B. Gregg, "The Flame Graph", Communications of the ACM 59(6), 2016) of one run, or of two
 * runs to compare them: an SVG document that can be zoomed and searched in a browser, without anything from
 * elsewhere.
 *
 * The paths of all exported threads are merged. A frame's width is its share of all calls (or of the time) of
 * it and of what it called; neighbours are in the order of their names, so that two graphs can be laid side
 * by side. Of two runs the width is the sum of both, so that what only one of them did is seen too, and the
 * colour says which one did more.
 *
 * Memory is bounded: from FLAME_NODES_MAX different paths on, further ones are added to the last frame that
 * they share with one that is there, and the graph says so.
 */
#ifndef TRACECTL_ANALYZER_PICTURE_FLAME_GRAPH_H
#define TRACECTL_ANALYZER_PICTURE_FLAME_GRAPH_H

#include <stdio.h>

#include "store/export/export_formats.h"

#define FLAME_NODES_MAX 200000u

/* `export --format flamegraph`. */
extern const struct export_format flame_graph_format;

struct flame_graph_run {
    struct tracestore *store;
    const struct tracestore_run *run;
};

/* Writes the graph that compares two runs, by calls. Fails as export_write() does. */
int flame_graph_compare(const struct flame_graph_run *baseline, const struct flame_graph_run *candidate,
                        FILE *out, struct error *err);

#endif
