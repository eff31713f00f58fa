/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/bytes/id_map.h"

#include <errno.h>
#include <stdlib.h>
#include <uthash.h>

struct id_entry {
    int64_t id, number;
    UT_hash_handle hh;
};

static struct id_entry *find(const struct id_map *map, int64_t id)
{
    struct id_entry *found;

    HASH_FIND(hh, map->ids, &id, sizeof(id), found);
    return found;
}

int64_t id_map_number(const struct id_map *map, int64_t id)
{
    const struct id_entry *found = find(map, id);

    return found ? found->number : 0;
}

int id_map_set(struct id_map *map, int64_t id, int64_t number)
{
    struct id_entry *entry = find(map, id);

    if (!entry) {
        entry = calloc(1, sizeof(*entry));
        if (!entry)
            return -ENOMEM;
        entry->id = id;
        HASH_ADD(hh, map->ids, id, sizeof(entry->id), entry);
        if (!entry->hh.tbl) {
            free(entry);
            return -ENOMEM;
        }
    }
    entry->number = number;
    return 0;
}

void id_map_release(struct id_map *map)
{
    struct id_entry *entry, *next;

    HASH_ITER (hh, map->ids, entry, next) {
        HASH_DEL(map->ids, entry);
        free(entry);
    }
}
