/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/flow/flow_loops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* ---------------------------------------------------------------------------------------------- order */

/* A depth-first walk: `next` counts the successors of a block that were visited. */
struct visit {
    uint32_t block, next;
};

/* Numbers the blocks in reverse postorder, which *ret_row is filled with. Blocks that no edge leads to come
 * last. */
static int number(struct flow_graph *graph, uint32_t *ret_row)
{
    AUTO_FREE struct visit *stack = calloc(graph->block_count, sizeof(*stack));
    AUTO_FREE bool *seen = calloc(graph->block_count, sizeof(*seen));
    uint32_t depth = 1, left = graph->block_count;

    if (!stack || !seen)
        return -ENOMEM;
    stack[0] = (struct visit){graph->first, 0};
    seen[graph->first] = true;
    while (depth > 0) {
        struct visit *top = &stack[depth - 1];
        const struct flow_block *block = &graph->blocks[top->block];
        uint32_t next;

        if (top->next == block->nexts) {
            ret_row[--left] = top->block;
            depth--;
            continue;
        }
        next = flow_graph_next(graph, top->block)[top->next++];
        if (!seen[next]) {
            seen[next] = true;
            stack[depth++] = (struct visit){next, 0};
        }
    }
    memmove(ret_row, ret_row + left, (graph->block_count - left) * sizeof(*ret_row));
    left = graph->block_count - left;
    for (uint32_t i = 0; i < graph->block_count; i++)
        if (!seen[i])
            ret_row[left++] = i;
    for (uint32_t i = 0; i < graph->block_count; i++)
        graph->blocks[ret_row[i]].order = i;
    return 0;
}

/* ---------------------------------------------------------------------------------------------- dominators
 */

static uint32_t meet(const struct flow_graph *graph, uint32_t a, uint32_t b)
{
    while (a != b) {
        while (graph->blocks[a].order > graph->blocks[b].order)
            a = graph->blocks[a].dominator;
        while (graph->blocks[b].order > graph->blocks[a].order)
            b = graph->blocks[b].dominator;
    }
    return a;
}

/* Cooper, Harvey and Kennedy's iteration, over edges instead of predecessors: a pass in reverse postorder
 * hands what is known of a block on to its successors. */
static void find_dominators(struct flow_graph *graph, const uint32_t *row)
{
    for (uint32_t i = 0; i < graph->block_count; i++)
        graph->blocks[i].dominator = FLOW_NONE;
    graph->blocks[graph->first].dominator = graph->first;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < graph->block_count; i++) {
            const struct flow_block *block = &graph->blocks[row[i]];
            const uint32_t *next = flow_graph_next(graph, row[i]);

            for (uint32_t k = 0; k < block->nexts && block->dominator != FLOW_NONE; k++) {
                struct flow_block *other = &graph->blocks[next[k]];
                uint32_t found =
                    other->dominator == FLOW_NONE ? row[i] : meet(graph, other->dominator, row[i]);

                if (next[k] == graph->first || found == other->dominator)
                    continue;
                other->dominator = found;
                changed = true;
            }
        }
    }
}

bool flow_graph_dominates(const struct flow_graph *graph, uint32_t dominator, uint32_t block)
{
    if (graph->blocks[block].dominator == FLOW_NONE)
        return false;
    while (graph->blocks[block].order > graph->blocks[dominator].order)
        block = graph->blocks[block].dominator;
    return block == dominator;
}

/* ---------------------------------------------------------------------------------------------- loops */

struct predecessors {
    uint32_t *first; /* of block i: items[first[i]] to items[first[i + 1] - 1] */
    uint32_t *items;
};

static int find_predecessors(const struct flow_graph *graph, struct predecessors *back)
{
    uint32_t sum = 0;

    back->first = calloc(graph->block_count + 2, sizeof(*back->first));
    back->items = calloc(graph->successor_count + 1, sizeof(*back->items));
    if (!back->first || !back->items)
        return -ENOMEM;
    for (size_t i = 0; i < graph->successor_count; i++)
        back->first[graph->successors[i] + 2]++;
    for (uint32_t i = 0; i < graph->block_count + 2; i++)
        back->first[i] = sum += back->first[i];
    for (uint32_t i = 0; i < graph->block_count; i++)
        for (uint32_t k = 0; k < graph->blocks[i].nexts; k++)
            back->items[back->first[flow_graph_next(graph, i)[k] + 1]++] = i;
    return 0;
}

static bool closes_loop(const struct flow_graph *graph, uint32_t from, uint32_t header)
{
    return flow_graph_dominates(graph, header, from);
}

struct body {
    uint32_t *stack;
    uint32_t *mark; /* of each block the last loop that was found to hold it, plus 1 */
};

/* Marks the blocks of the loop of `header`: those from which one of its back edges is reached without it.
 * They are in no loop so far, or in one around this. */
static void mark_body(struct flow_graph *graph, const struct predecessors *back, uint32_t header,
                      uint32_t loop, struct body *body)
{
    uint32_t count = 0;

    body->mark[header] = loop + 1;
    graph->blocks[header].loop = loop;
    for (uint32_t i = back->first[header]; i < back->first[header + 1]; i++)
        if (closes_loop(graph, back->items[i], header))
            body->stack[count++] = back->items[i];
    while (count > 0) {
        uint32_t block = body->stack[--count];

        if (body->mark[block] == loop + 1)
            continue;
        body->mark[block] = loop + 1;
        graph->blocks[block].loop = loop;
        for (uint32_t i = back->first[block]; i < back->first[block + 1]; i++)
            if (graph->blocks[back->items[i]].dominator != FLOW_NONE &&
                body->mark[back->items[i]] != loop + 1)
                body->stack[count++] = back->items[i];
    }
}

static bool is_header(const struct flow_graph *graph, const struct predecessors *back, uint32_t block)
{
    for (uint32_t i = back->first[block]; i < back->first[block + 1]; i++)
        if (closes_loop(graph, back->items[i], block))
            return true;
    return false;
}

/* Loops in the order of their headers: the header of an outer loop dominates, and so precedes, those inside.
 * What a header's block is in when its turn comes is the loop around. */
static int find_loops(struct flow_graph *graph, const struct predecessors *back, const uint32_t *row)
{
    AUTO_FREE uint32_t *stack = calloc(graph->successor_count + graph->block_count + 1, sizeof(*stack));
    AUTO_FREE uint32_t *mark = calloc(graph->block_count, sizeof(*mark));
    struct body body = {stack, mark};
    size_t capacity = 0;

    if (!stack || !mark)
        return -ENOMEM;
    for (uint32_t i = 0; i < graph->block_count; i++)
        graph->blocks[i].loop = FLOW_NONE;
    for (uint32_t i = 0; i < graph->block_count; i++) {
        uint32_t parent = graph->blocks[row[i]].loop;

        if (!is_header(graph, back, row[i]))
            continue;
        if (array_reserve(&graph->loops, &capacity, graph->loop_count + 1) < 0)
            return -ENOMEM;
        graph->loops[graph->loop_count] =
            (struct flow_loop){row[i], parent, parent == FLOW_NONE ? 1 : graph->loops[parent].depth + 1};
        mark_body(graph, back, row[i], graph->loop_count++, &body);
    }
    return 0;
}

bool flow_graph_in_loop(const struct flow_graph *graph, uint32_t loop, uint32_t block)
{
    uint32_t at = graph->blocks[block].loop;

    if (loop == FLOW_NONE)
        return true;
    while (at != FLOW_NONE && at > loop)
        at = graph->loops[at].parent;
    return at == loop;
}

bool flow_graph_is_back_edge(const struct flow_graph *graph, uint32_t from, uint32_t to)
{
    uint32_t loop = graph->blocks[to].loop;

    return loop != FLOW_NONE && graph->loops[loop].header == to && flow_graph_in_loop(graph, loop, from);
}

uint32_t flow_graph_common_loop(const struct flow_graph *graph, uint32_t a, uint32_t b)
{
    uint32_t loop = graph->blocks[a].loop;

    while (loop != FLOW_NONE && !flow_graph_in_loop(graph, loop, b))
        loop = graph->loops[loop].parent;
    return loop;
}

/* ---------------------------------------------------------------------------------------------- entries */

/* An edge that leads back in the order of the walk and closes no natural loop. */
struct retreat {
    uint32_t from, to;
};

/* Whether the edge closes a loop that holds the whole of the retreat: what lies behind it is another turn. */
static bool leaves(const struct flow_graph *graph, const struct retreat *retreat, uint32_t from, uint32_t to)
{
    uint32_t loop = graph->blocks[to].loop;

    return flow_graph_is_back_edge(graph, from, to) && flow_graph_in_loop(graph, loop, retreat->from) &&
           flow_graph_in_loop(graph, loop, retreat->to);
}

/* Marks what can be reached from where the retreat leads to. */
static void mark_after(const struct flow_graph *graph, const struct retreat *retreat, uint32_t *stack,
                       bool *after)
{
    uint32_t count = 0;

    after[retreat->to] = true;
    stack[count++] = retreat->to;
    while (count > 0) {
        uint32_t block = stack[--count];
        const uint32_t *next = flow_graph_next(graph, block);

        for (uint32_t k = 0; k < graph->blocks[block].nexts; k++) {
            if (after[next[k]] || leaves(graph, retreat, block, next[k]))
                continue;
            after[next[k]] = true;
            stack[count++] = next[k];
        }
    }
}

/* Of those, what leads to where it comes from: all of that is in a cycle with it. */
static void mark_cycle(struct flow_graph *graph, const struct predecessors *back,
                       const struct retreat *retreat, uint32_t *stack, bool *after)
{
    uint32_t count = 0;

    if (!after[retreat->from])
        return;
    after[retreat->from] = false;
    stack[count++] = retreat->from;
    while (count > 0) {
        uint32_t block = stack[--count];

        graph->blocks[block].flags |= FLOW_BLOCK_IRREDUCIBLE;
        for (uint32_t i = back->first[block]; i < back->first[block + 1]; i++) {
            uint32_t before = back->items[i];

            if (!after[before] || leaves(graph, retreat, before, block))
                continue;
            after[before] = false;
            stack[count++] = before;
        }
    }
}

/* Without the edges that close natural loops, what is still in a cycle is in one of several entries. */
static int mark_irreducible(struct flow_graph *graph, const struct predecessors *back)
{
    AUTO_FREE uint32_t *stack = calloc(graph->block_count, sizeof(*stack));
    AUTO_FREE bool *after = calloc(graph->block_count, sizeof(*after));

    if (!stack || !after)
        return -ENOMEM;
    for (uint32_t from = 0; from < graph->block_count; from++) {
        if (graph->blocks[from].dominator == FLOW_NONE)
            continue;
        for (uint32_t k = 0; k < graph->blocks[from].nexts; k++) {
            struct retreat retreat = {from, flow_graph_next(graph, from)[k]};

            if (graph->blocks[retreat.to].order > graph->blocks[from].order ||
                closes_loop(graph, from, retreat.to))
                continue;
            memset(after, 0, graph->block_count * sizeof(*after));
            mark_after(graph, &retreat, stack, after);
            mark_cycle(graph, back, &retreat, stack, after);
        }
    }
    return 0;
}

int flow_loops_find(struct flow_graph *graph)
{
    AUTO_FREE uint32_t *row = calloc(graph->block_count, sizeof(*row));
    struct predecessors back = {0};
    int r = row ? number(graph, row) : -ENOMEM;

    if (r == 0) {
        find_dominators(graph, row);
        r = find_predecessors(graph, &back);
    }
    if (r == 0)
        r = find_loops(graph, &back, row);
    if (r == 0)
        r = mark_irreducible(graph, &back);
    free(back.first);
    free(back.items);
    return r;
}
