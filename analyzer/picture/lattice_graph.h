/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A concept lattice as a picture: a box for each concept, with what its threads have in common beyond the
 * concepts above it, and the threads that no concept below has.
 *
 * Large lattices cannot be read. Of these the part is drawn that is called the iceberg: the concepts that
 * most threads have (Stumme, Taouil, Bastide, Pasquier and Lakhal, "Computing iceberg concept lattices with
 * TITANIC", Data and Knowledge Engineering 42, 2002). All that is above one of them belongs to it, too.
 */
#ifndef TRACECTL_ANALYZER_PICTURE_LATTICE_GRAPH_H
#define TRACECTL_ANALYZER_PICTURE_LATTICE_GRAPH_H

#include "analyzer/cluster/lattice.h"
#include "analyzer/loops/loop_summary.h"

/* An object of the lattice can stand for several threads. */
struct lattice_graph {
    const struct lattice *lattice;
    const struct attribute_table *attributes;
    const struct loop_summary *summary;
    const char *const *names; /* of the threads */
    const uint32_t *threads;  /* those of the objects, one behind the other, each ascending */
    const size_t *first;      /* object i has threads[first[i]] to before threads[first[i + 1]] */
    size_t most;              /* concepts, at least 1 */
    double widest;            /* pixels: fewer are drawn while the picture is wider */
    const char *title, *description;
};

/* What came of it. */
struct lattice_drawn {
    char *svg;    /* an element of a page, from malloc */
    size_t drawn; /* concepts */
    size_t least; /* threads that each of them has at least */
};

/* Fails with -ENOMEM or -EIO (see layers.h). */
int lattice_graph_draw(const struct lattice_graph *graph, struct lattice_drawn *ret_drawn);

#endif
