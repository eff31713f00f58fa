/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A matrix of similarities, or of how much they changed, as a picture: a row and a column for each object.
 *
 * Small matrices have their numbers in the cells; every picture has a scale beside it. The colours are
 * perceptually uniform and told apart by colour-blind people, and in print without colours: cividis (Nuñez,
 * Anderton and Renslow, PLOS ONE 13(7), 2018) for similarities, white to dark orange for changes.
 */
#ifndef TRACECTL_ANALYZER_PICTURE_HEAT_MAP_H
#define TRACECTL_ANALYZER_PICTURE_HEAT_MAP_H

#include <stdbool.h>

#include "analyzer/cluster/similarity.h"

enum heat_scale {
    HEAT_SIMILARITY, /* 0 to 1, the diagonal is 1 */
    HEAT_CHANGE,     /* 0 to 1, the diagonal is 0; the scale ends sooner when all changes are small */
};

struct heat_map {
    const struct similarity *values;
    enum heat_scale scale;
    const char *const *names; /* of the objects */
    const bool *marked;       /* names with a mark, or NULL: none */
    const size_t *rows;       /* the objects to be drawn, in this order; NULL: all of them */
    size_t row_count;
    const char *title, *description;
};

/* An element of a page. In memory from malloc; NULL: there was not enough. */
char *heat_map_svg(const struct heat_map *map);

#endif
