/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/flow/call_depth.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "image/arch/stack_effect.h"

#define UNSEEN INT64_MIN /* nothing has led to the block yet */
#define LOST INT64_MAX   /* not known */

struct call_list {
    struct call_depth *items;
    size_t count, capacity;
};

static int add_call(struct call_list *calls, const struct instruction *instruction, int64_t depth)
{
    if (array_reserve(&calls->items, &calls->capacity, calls->count + 1))
        return -ENOMEM;
    calls->items[calls->count++] =
        (struct call_depth){instruction->address + instruction->length, (uint64_t)depth};
    return 0;
}

/* The depth behind a block that is entered with `depth`. Its calls are listed if `calls` is not NULL. */
static int follow_block(const struct flow_graph *graph, const struct flow_block *block, int64_t depth,
                        struct call_list *calls, int64_t *ret_depth)
{
    for (size_t i = block->first; i < block->first + block->count; i++) {
        const struct instruction *instruction = &graph->instructions[i];
        int64_t bytes;

        if (calls && instruction_is_call(instruction) && depth != LOST && depth >= 0 &&
            add_call(calls, instruction, depth))
            return -ENOMEM;
        if (instruction_stack_effect(instruction, &bytes) == STACK_LOST)
            depth = LOST;
        else if (depth != LOST)
            depth -= bytes;
    }
    *ret_depth = depth;
    return 0;
}

/* Takes the depth over into a block. Returns whether that says more, or less, than what was known there. */
static bool enter(int64_t *known, int64_t depth)
{
    int64_t before = *known;

    if (before == UNSEEN)
        *known = depth;
    else if (before != depth)
        *known = LOST;
    return *known != before;
}

/* The depth at the beginning of each block. A block is followed anew at most twice: when its depth becomes
 * known, and when that is lost. */
static int enter_blocks(const struct flow_graph *graph, int64_t *depths)
{
    AUTO_FREE uint32_t *stack = malloc((2 * (size_t)graph->block_count + 1) * sizeof(*stack));
    size_t count = 0;

    if (!stack)
        return -ENOMEM;
    for (uint32_t i = 0; i < graph->block_count; i++)
        depths[i] = UNSEEN;
    depths[graph->first] = 0;
    stack[count++] = graph->first;
    while (count) {
        uint32_t number = stack[--count];
        const struct flow_block *block = &graph->blocks[number];
        int64_t depth;

        follow_block(graph, block, depths[number], NULL, &depth);
        for (uint32_t i = 0; i < block->nexts; i++) {
            uint32_t next = flow_graph_next(graph, number)[i];

            if (enter(&depths[next], depth))
                stack[count++] = next;
        }
    }
    return 0;
}

int call_depths(const struct flow_graph *graph, struct call_depth **ret_calls, size_t *ret_count)
{
    AUTO_FREE int64_t *depths = malloc(((size_t)graph->block_count + 1) * sizeof(*depths));
    struct call_list calls = {0};
    int r = 0;

    *ret_calls = NULL;
    *ret_count = 0;
    if (!flow_graph_is_closed(graph))
        return 0;
    if (!depths)
        return -ENOMEM;
    r = enter_blocks(graph, depths);
    for (uint32_t i = 0; !r && i < graph->block_count; i++) {
        int64_t ignored;

        if (depths[i] != UNSEEN)
            r = follow_block(graph, &graph->blocks[i], depths[i], &calls, &ignored);
    }
    if (r) {
        free(calls.items);
        return r;
    }
    *ret_calls = calls.items;
    *ret_count = calls.count;
    return 0;
}
