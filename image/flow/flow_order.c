/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which of two points of a function comes first. */
#include <errno.h>
#include <stdlib.h>

#include "image/flow/flow_graph.h"

/* What can be reached from one block, inside one iteration of the loops that are common to two. */
struct reach {
    bool *blocks;
    bool unknown; /* a jump that may lead anywhere is among them */
};

static bool may_lead_anywhere(const struct flow_graph *graph, const struct flow_block *block)
{
    return (block->flags & FLOW_BLOCK_UNKNOWN) ||
           (graph->unseen_entries && (block->flags & FLOW_BLOCK_CALLS));
}

/* Follows all edges but those that close `common` or a loop around it. */
static int find_reach(const struct flow_graph *graph, uint32_t from, uint32_t common, struct reach *reach)
{
    AUTO_FREE uint32_t *stack = calloc(graph->block_count, sizeof(*stack));
    uint32_t count = 0;

    reach->blocks = calloc(graph->block_count, sizeof(*reach->blocks));
    if (!stack || !reach->blocks)
        return -ENOMEM;
    stack[count++] = from;
    while (count > 0) {
        uint32_t block = stack[--count];
        const uint32_t *next = flow_graph_next(graph, block);

        reach->unknown |= may_lead_anywhere(graph, &graph->blocks[block]);
        for (uint32_t k = 0; k < graph->blocks[block].nexts; k++) {
            bool closes = common != FLOW_NONE && flow_graph_is_back_edge(graph, block, next[k]) &&
                          flow_graph_in_loop(graph, graph->blocks[next[k]].loop, graph->loops[common].header);

            if (closes || reach->blocks[next[k]])
                continue;
            reach->blocks[next[k]] = true;
            stack[count++] = next[k];
        }
    }
    return 0;
}

/* Where both lie in the same block, addresses decide. */
static enum flow_order order_of_addresses(const struct instruction *a, const struct instruction *b)
{
    if (a == b)
        return FLOW_SAME;
    return a->address < b->address ? FLOW_BEFORE : FLOW_AFTER;
}

static enum flow_order order_of_reach(const struct reach *from_a, const struct reach *from_b, uint32_t a,
                                      uint32_t b)
{
    bool to_b = from_a->blocks[b], to_a = from_b->blocks[a];

    if (to_b == to_a)
        return FLOW_UNORDERED;
    if (to_b)
        return from_b->unknown ? FLOW_UNKNOWN : FLOW_BEFORE;
    return from_a->unknown ? FLOW_UNKNOWN : FLOW_AFTER;
}

static int order_of_blocks(const struct flow_graph *graph, uint32_t a, uint32_t b, enum flow_order *ret_order)
{
    uint32_t common = flow_graph_common_loop(graph, a, b);
    struct reach from_a = {0}, from_b = {0};
    int r = find_reach(graph, a, common, &from_a);

    if (r == 0)
        r = find_reach(graph, b, common, &from_b);
    if (r == 0)
        *ret_order = order_of_reach(&from_a, &from_b, a, b);
    free(from_a.blocks);
    free(from_b.blocks);
    return r;
}

int flow_graph_order(const struct flow_graph *graph, uint64_t a, uint64_t b, enum flow_order *ret_order)
{
    const struct instruction *at_a = flow_graph_instruction(graph, a),
                             *at_b = flow_graph_instruction(graph, b);
    uint32_t block_a = flow_graph_block(graph, a), block_b = flow_graph_block(graph, b);

    *ret_order = FLOW_UNKNOWN;
    if (!at_a || !at_b || block_a == FLOW_NONE || block_b == FLOW_NONE || graph->returns_twice)
        return 0;
    if (graph->blocks[block_a].dominator == FLOW_NONE || graph->blocks[block_b].dominator == FLOW_NONE)
        return 0;
    if (graph->blocks[block_a].flags & graph->blocks[block_b].flags & FLOW_BLOCK_IRREDUCIBLE) {
        *ret_order = FLOW_UNORDERED;
        return 0;
    }
    if (block_a == block_b) {
        *ret_order = order_of_addresses(at_a, at_b);
        return 0;
    }
    return order_of_blocks(graph, block_a, block_b, ret_order);
}
