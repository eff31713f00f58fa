/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers by the ids of rows. A hash and no array: in a damaged store, or a hostile one, an id is of any
 * size. */
#ifndef TRACESTORE_ID_MAP_H
#define TRACESTORE_ID_MAP_H

#include <stdint.h>

/* Zero-initialised: empty. */
struct id_map {
    struct id_entry *ids;
};

/* 0: there is none. */
int64_t id_map_number(const struct id_map *map, int64_t id);
/* -ENOMEM. */
int id_map_set(struct id_map *map, int64_t id, int64_t number);
void id_map_release(struct id_map *map);

#endif
