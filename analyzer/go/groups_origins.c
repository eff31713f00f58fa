/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/go/groups_state.h"
#include "base/array.h"

/* Places on the way up that are looked at: a program that makes goroutines in a circle does so in few; events
 * that claim a line of millions must not take the square of that. */
#define MOST_ABOVE 1000

/* The origin itself or one above it with that place and function; origin_count: there is none. */
static uint32_t found_above(const struct go_groups *groups, uint32_t origin, const struct origin_key *key)
{
    for (int steps = 0; origin != GO_ORIGIN_BEFORE && steps < MOST_ABOVE; steps++) {
        const struct go_origin *above = &groups->origins[origin];

        if (key->created_at && above->created_at == key->created_at && above->function == key->function)
            return origin;
        origin = above->parent;
    }
    return (uint32_t)groups->origin_count;
}

static int add_origin(struct go_groups *groups, const struct origin_key *key, uint32_t *ret_origin)
{
    struct go_origin *origin;
    struct origin_node *node;

    if (array_reserve(&groups->origins, &groups->origin_capacity, groups->origin_count + 1))
        return -ENOMEM;
    node = calloc(1, sizeof(*node));
    if (!node)
        return -ENOMEM;
    node->key = *key;
    node->number = (uint32_t)groups->origin_count;
    HASH_ADD(hh, groups->origin_table, key, sizeof(node->key), node);
    if (!node->hh.tbl) {
        free(node);
        return -ENOMEM;
    }
    origin = &groups->origins[groups->origin_count++];
    *origin =
        (struct go_origin){.parent = key->parent, .created_at = key->created_at, .function = key->function};
    origin->system = key->function && groups->options.is_runtime &&
                     groups->options.is_runtime(groups->options.context, key->function);
    *ret_origin = node->number;
    return 0;
}

int origin_get(struct go_groups *groups, uint32_t parent, uint32_t created_at, uint32_t function,
               uint32_t *ret_origin)
{
    struct origin_key key;
    struct origin_node *node;
    uint32_t above;

    memset(&key, 0,
           sizeof(key)); /* it is hashed byte by byte, which static analysis follows only like this */
    key.parent = parent;
    key.created_at = created_at;
    key.function = function;
    above = found_above(groups, parent, &key);
    if (above < groups->origin_count) {
        *ret_origin = above;
        return 0;
    }
    HASH_FIND(hh, groups->origin_table, &key, sizeof(key), node);
    if (!node)
        return add_origin(groups, &key, ret_origin);
    *ret_origin = node->number;
    return 0;
}

int stop_get(struct go_groups *groups, const struct stop_key *key, uint32_t *ret_stop)
{
    struct stop *stop;

    HASH_FIND(hh, groups->stop_table, key, sizeof(*key), stop);
    if (!stop) {
        if (array_reserve(&groups->stops, &groups->stop_capacity, groups->stop_count + 1))
            return -ENOMEM;
        stop = calloc(1, sizeof(*stop));
        if (!stop)
            return -ENOMEM;
        stop->key = *key;
        stop->number = (uint32_t)groups->stop_count;
        HASH_ADD(hh, groups->stop_table, key, sizeof(stop->key), stop);
        if (!stop->hh.tbl) {
            free(stop);
            return -ENOMEM;
        }
        groups->stops[groups->stop_count++] = stop;
    }
    *ret_stop = stop->number;
    return 0;
}

void origins_free(struct go_groups *groups)
{
    struct origin_node *node, *next;

    HASH_ITER (hh, groups->origin_table, node, next) {
        HASH_DEL(groups->origin_table, node);
        free(node);
    }
    HASH_CLEAR(hh, groups->stop_table);
    for (size_t i = 0; i < groups->stop_count; i++)
        free(groups->stops[i]);
    free(groups->stops);
    free(groups->origins);
}
