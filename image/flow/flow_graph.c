/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The basic blocks of a function; flow_reader.c reads its instructions, flow_loops.c has what follows from
 * blocks. */
#include "image/flow/flow_graph.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "image/arch/operands.h"
#include "image/flow/flow_loops.h"
#include "image/flow/flow_reader.h"

/* ---------------------------------------------------------------------------------------------- blocks */

static bool ends_block(struct flow_reader *reader, size_t index)
{
    const struct flow_graph *graph = reader->graph;
    const struct instruction *instruction = &graph->instructions[index], *next = instruction + 1;

    return index + 1 == graph->instruction_count || instruction->kind == INSTRUCTION_BRANCH ||
           !flow_reader_goes_on(reader, instruction) ||
           next->address != instruction->address + instruction->length ||
           flow_reader_is_leader(reader, next->address);
}

static int make_blocks(struct flow_reader *reader)
{
    struct flow_graph *graph = reader->graph;
    size_t count = 0, first = 0;

    for (size_t i = 0; i < graph->instruction_count; i++)
        count += ends_block(reader, i);
    graph->blocks = calloc(count + 1, sizeof(*graph->blocks));
    if (!graph->blocks)
        return -ENOMEM;
    for (size_t i = 0; i < graph->instruction_count; i++) {
        const struct instruction *instruction = &graph->instructions[i];
        struct flow_block *block = &graph->blocks[graph->block_count];

        if (instruction_is_call(instruction))
            block->flags |= FLOW_BLOCK_CALLS;
        if (!ends_block(reader, i))
            continue;
        block->first = first;
        block->count = i + 1 - first;
        block->start = graph->instructions[first].address;
        block->end = instruction->address + instruction->length;
        first = i + 1;
        graph->block_count++;
    }
    return 0;
}

static int add_successor(struct flow_graph *graph, struct flow_block *block, uint64_t address)
{
    uint32_t next = flow_graph_block(graph, address);

    if (next == FLOW_NONE)
        return 0;
    for (uint32_t i = 0; i < block->nexts; i++)
        if (graph->successors[block->next + i] == next)
            return 0;
    if (array_reserve(&graph->successors, &graph->successor_capacity, graph->successor_count + 1) < 0)
        return -ENOMEM;
    graph->successors[graph->successor_count++] = next;
    block->nexts++;
    return 0;
}

/* An indirect jump that is no switch: through memory that no index selects it leaves the function; else
 * nothing is known. */
static unsigned indirect_flags(const struct instruction *jump)
{
    struct memory_operand memory;

    return instruction_memory(jump, &memory) && memory.index == REGISTER_NONE && memory.base == REGISTER_PC
               ? FLOW_BLOCK_TAIL
               : FLOW_BLOCK_UNKNOWN;
}

static int connect_indirect(struct flow_reader *reader, struct flow_block *block,
                            const struct instruction *jump)
{
    if (!flow_reader_has_way(reader, jump->address))
        block->flags |= indirect_flags(jump);
    for (size_t i = 0; i < reader->way_count; i++)
        if (reader->ways[i][0] == jump->address &&
            add_successor(reader->graph, block, reader->ways[i][1]) < 0)
            return -ENOMEM;
    return 0;
}

static int connect(struct flow_reader *reader, struct flow_block *block)
{
    struct flow_graph *graph = reader->graph;
    const struct instruction *last = &graph->instructions[block->first + block->count - 1];
    int r = 0;

    block->next = (uint32_t)graph->successor_count;
    if (last->kind == INSTRUCTION_JUMP_INDIRECT)
        return connect_indirect(reader, block, last);
    if (flow_reader_goes_on(reader, last))
        r = add_successor(graph, block, block->end);
    if (r == 0 && (last->kind == INSTRUCTION_BRANCH || last->kind == INSTRUCTION_JUMP)) {
        if (!flow_reader_extent(reader, last->target))
            block->flags |= FLOW_BLOCK_TAIL;
        r = add_successor(graph, block, last->target);
    }
    return r;
}

static int build(struct flow_reader *reader, const struct image_function *function)
{
    struct flow_graph *graph = reader->graph;
    int r = flow_reader_read(reader, function);

    /* flow_graph_next() points into them, also where there are none. */
    if (r == 0)
        r = array_reserve(&graph->successors, &graph->successor_capacity, 1);
    if (r == 0)
        r = make_blocks(reader);
    for (uint32_t i = 0; r == 0 && i < graph->block_count; i++)
        r = connect(reader, &graph->blocks[i]);
    graph->first = r == 0 ? flow_graph_block(graph, function->address) : FLOW_NONE;
    if (r == 0 && graph->first == FLOW_NONE)
        return -ENOENT;
    return r == 0 ? flow_loops_find(graph) : r;
}

int flow_graph_new(struct elf_image *image, const struct image_function *functions, size_t count,
                   const struct image_function *function, struct disasm *disasm,
                   struct flow_graph **ret_graph)
{
    AUTO_FLOW_GRAPH struct flow_graph *graph = calloc(1, sizeof(*graph));
    struct flow_reader reader = {
        .image = image, .functions = functions, .function_count = count, .disasm = disasm, .graph = graph};
    int r;

    if (!graph)
        return -ENOMEM;
    graph->entry = function->address;
    r = build(&reader, function);
    flow_reader_release(&reader);
    if (r == 0)
        *ret_graph = take_pointer(graph);
    return r;
}

void flow_graph_free(struct flow_graph *graph)
{
    if (!graph)
        return;
    free(graph->instructions);
    free(graph->blocks);
    free(graph->successors);
    free(graph->tails);
    free(graph->loops);
    free(graph);
}

/* ---------------------------------------------------------------------------------------------- questions */

bool flow_graph_is_closed(const struct flow_graph *graph)
{
    for (uint32_t i = 0; i < graph->block_count; i++)
        if (graph->blocks[i].flags & FLOW_BLOCK_UNKNOWN)
            return false;
    return !graph->unseen_entries && !graph->returns_twice;
}

uint32_t flow_graph_block(const struct flow_graph *graph, uint64_t address)
{
    uint32_t low = 0, high = graph->block_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (graph->blocks[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && address < graph->blocks[low - 1].end ? low - 1 : FLOW_NONE;
}

const struct instruction *flow_graph_instruction(const struct flow_graph *graph, uint64_t address)
{
    size_t low = 0, high = graph->instruction_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (graph->instructions[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || address - graph->instructions[low - 1].address >= graph->instructions[low - 1].length)
        return NULL;
    return &graph->instructions[low - 1];
}
