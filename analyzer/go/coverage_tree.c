/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/go/coverage_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* A line that no source has tells the two nodes without a place apart. */
enum { LINE_OF_MAIN = -1, LINE_OF_UNKNOWN = -2 };

static int add_node(struct go_coverage *coverage, const struct node_key *key, const char *function,
                    struct node **ret_node)
{
    struct node *node, *added;

    if (array_reserve(&coverage->node_list, &coverage->node_capacity, coverage->node_count + 1))
        return -ENOMEM;
    node = calloc(1, sizeof(*node));
    if (!node)
        return -ENOMEM;
    node->key = *key;
    node->number = (uint32_t)coverage->node_count;
    node->public = (struct go_coverage_node){.parent = key->parent,
                                             .file = key->file,
                                             .line = key->line > 0 ? key->line : 0,
                                             .function = function,
                                             .main = key->line == LINE_OF_MAIN};
    HASH_ADD(hh, coverage->nodes, key, sizeof(node->key), node);
    HASH_FIND(hh, coverage->nodes, key, sizeof(*key), added);
    if (!added) {
        free(node);
        return -ENOMEM;
    }
    coverage->node_list[coverage->node_count++] = node;
    *ret_node = node;
    return 0;
}

/* Ancestors that are looked at: a program that makes goroutines in a circle does so in few places; events
 * that claim a line of millions must not take the square of that. */
#define MOST_ABOVE 1000

/* The node itself or an ancestor that was made at the place. */
static struct node *made_at(const struct go_coverage *coverage, uint32_t number, const struct node_key *key)
{
    for (int steps = 0; number != GO_NO_NODE && steps < MOST_ABOVE; steps++) {
        struct node *node = coverage->node_list[number];

        if (node->key.file == key->file && node->key.line == key->line)
            return node;
        number = node->public.parent;
    }
    return NULL;
}

int node_get(struct go_coverage *coverage, uint32_t parent, const struct go_place *place, bool main,
             uint32_t *ret_node)
{
    struct coverage_text *file = place ? coverage_intern(coverage, place->file) : NULL;
    struct coverage_text *function = place ? coverage_intern(coverage, place->function) : NULL;
    struct node_key key;
    struct node *node;
    int r = 0;

    if (place && (!file || !function))
        return -ENOMEM;
    memset(&key, 0, sizeof(key));
    key.file = file ? file->text : NULL;
    key.line = place ? place->line : main ? LINE_OF_MAIN : LINE_OF_UNKNOWN;
    key.parent = parent;
    node = made_at(coverage, parent, &key);
    if (!node)
        HASH_FIND(hh, coverage->nodes, &key, sizeof(key), node);
    if (!node)
        r = add_node(coverage, &key, function ? function->text : NULL, &node);
    if (!r)
        *ret_node = node->number;
    return r;
}

void nodes_free(struct go_coverage *coverage)
{
    HASH_CLEAR(hh, coverage->nodes);
    for (size_t i = 0; i < coverage->node_count; i++)
        free(coverage->node_list[i]);
    free(coverage->node_list);
}
