/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/cascade/waited.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/cascade/happens_before.h"
#include "base/array.h"

struct waited *waited_get(struct waited **table, enum what what, uint32_t process, uint64_t object)
{
    unsigned char key[TRACE_KEY_SIZE];
    struct waited *found;

    trace_key(key, object, (uint64_t)process << 32 | what);
    HASH_FIND(hh, *table, key, sizeof(key), found);
    if (found)
        return found;
    found = calloc(1, sizeof(*found));
    if (!found)
        return NULL;
    memcpy(found->key, key, sizeof(key));
    found->made = found->ended = HB_NONE;
    HASH_ADD(hh, *table, key, sizeof(found->key), found);
    if (!found->hh.tbl) {
        free(found);
        return NULL;
    }
    return found;
}

void waited_forget(struct waited **table, struct waited *waited)
{
    HASH_DEL(*table, waited);
    free(waited->marks);
    free(waited);
}

int waited_mark(struct waited *waited, uint32_t event, uint32_t node)
{
    if (waited->first > 64 && waited->first > waited->count / 2) {
        waited->count -= waited->first;
        memmove(waited->marks, waited->marks + waited->first, waited->count * sizeof(*waited->marks));
        waited->first = 0;
    }
    if (array_reserve(&waited->marks, &waited->capacity, waited->count + 1) < 0)
        return -ENOMEM;
    waited->marks[waited->count++] = (struct mark){event, node, waited->round, false};
    return 0;
}
