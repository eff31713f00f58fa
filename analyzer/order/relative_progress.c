/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/order/relative_progress.h"

#include <errno.h>

uint32_t order_loops_around(const struct flow_graph *graph, uint64_t address, uint32_t loops[ORDER_LOOPS_MAX])
{
    uint32_t block = flow_graph_block(graph, address), depth;

    if (block == FLOW_NONE || graph->blocks[block].loop == FLOW_NONE)
        return 0;
    depth = graph->loops[graph->blocks[block].loop].depth;
    for (uint32_t loop = graph->blocks[block].loop; loop != FLOW_NONE; loop = graph->loops[loop].parent)
        if (graph->loops[loop].depth <= ORDER_LOOPS_MAX)
            loops[graph->loops[loop].depth - 1] = loop;
    return depth < ORDER_LOOPS_MAX ? depth : ORDER_LOOPS_MAX;
}

static const struct order_iteration *iteration_of(const struct order_point *point, uint32_t depth)
{
    static const struct order_iteration unknown;

    return depth <= point->depth ? &point->iterations[depth - 1] : &unknown;
}

/* A loop that is entered again and again by a cycle of which nobody knows how often it went round. */
static bool is_counted(const struct flow_graph *graph, uint32_t loop)
{
    return !(graph->blocks[graph->loops[loop].header].flags & FLOW_BLOCK_IRREDUCIBLE);
}

static enum order_relation of_numbers(uint64_t a, uint64_t b)
{
    return a < b ? ORDER_BEHIND : a > b ? ORDER_AHEAD : ORDER_SAME;
}

/* Goes through the loops around both, up to `loop`, from the outermost. True: their iterations decide, or
 * make that nothing can be said. */
static bool iterations_decide(const struct flow_graph *graph, const struct order_point *a,
                              const struct order_point *b, uint32_t loop, struct order_answer *answer)
{
    const struct order_iteration *of_a, *of_b;

    if (loop == FLOW_NONE)
        return false;
    if (iterations_decide(graph, a, b, graph->loops[loop].parent, answer))
        return true;
    if (!is_counted(graph, loop)) {
        answer->relation = ORDER_INCOMPARABLE;
        return true;
    }
    of_a = iteration_of(a, graph->loops[loop].depth);
    of_b = iteration_of(b, graph->loops[loop].depth);
    if (!of_a->known || !of_b->known) {
        if (!answer->assumed)
            answer->loop = loop;
        answer->assumed = true;
        return false;
    }
    answer->relation = of_numbers(of_a->count, of_b->count);
    if (answer->relation == ORDER_SAME)
        return false;
    if (!answer->assumed)
        answer->loop = loop;
    return true;
}

static enum order_relation of_positions(enum flow_order order)
{
    switch (order) {
    case FLOW_SAME:
        return ORDER_SAME;
    case FLOW_BEFORE:
        return ORDER_BEHIND;
    case FLOW_AFTER:
        return ORDER_AHEAD;
    case FLOW_UNORDERED:
        return ORDER_INCOMPARABLE;
    case FLOW_UNKNOWN:
        break;
    }
    return ORDER_UNKNOWN;
}

int order_compare(const struct order_function *function, const struct order_point *a,
                  const struct order_point *b, struct order_answer *ret_answer)
{
    const struct flow_graph *graph = function->graph;
    struct order_answer answer = {.relation = ORDER_UNKNOWN, .loop = FLOW_NONE};
    uint32_t block_a = graph ? flow_graph_block(graph, a->address) : FLOW_NONE;
    uint32_t block_b = graph ? flow_graph_block(graph, b->address) : FLOW_NONE;
    enum flow_order order;
    int r = 0;

    if (block_a != FLOW_NONE && block_b != FLOW_NONE && !graph->returns_twice &&
        !iterations_decide(graph, a, b, flow_graph_common_loop(graph, block_a, block_b), &answer)) {
        r = flow_graph_order(graph, a->address, b->address, &order);
        if (r == 0)
            answer.relation = of_positions(order);
    }
    if (r == 0)
        *ret_answer = answer;
    return r;
}
