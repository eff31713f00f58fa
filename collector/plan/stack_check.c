/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/plan/stack_check.h"

/* Nine integer and fifteen floating-point arguments are saved and restored, two instructions each. */
#define PIECE_INSTRUCTIONS 64

/* Follows the piece at `at`. Returns the address of the jump at its end, 0 if it is no such piece. */
static uint64_t find_jump_back(const struct flow_map *map, uint64_t entry, uint64_t end, uint64_t at)
{
    bool has_called = false;

    for (int i = 0; i < PIECE_INSTRUCTIONS && at > entry && at < end; i++) {
        struct instruction instruction;
        size_t size;
        const uint8_t *code = flow_map_code(map, at, &size);

        if (!code || disasm_skim(code, size, at, &instruction) < 0)
            return 0;
        switch (instruction.kind) {
        case INSTRUCTION_OTHER:
        case INSTRUCTION_NOP:
        case INSTRUCTION_PUSH:
            break;
        case INSTRUCTION_CALL:
        case INSTRUCTION_CALL_INDIRECT:
            if (has_called)
                return 0;
            has_called = true;
            break;
        case INSTRUCTION_JUMP:
            return has_called && instruction.target == entry ? at : 0;
        default:
            return 0;
        }
        at += instruction.length;
    }
    return 0;
}

bool stack_check_is(const struct flow_map *map, uint64_t entry, size_t size, const struct instruction *branch)
{
    uint64_t jump = find_jump_back(map, entry, entry + size, branch->target);
    size_t count;
    const struct flow_edge *edges = flow_map_edges_to(map, entry, entry, &count);

    if (!jump)
        return false;
    for (size_t i = 0; i < count; i++)
        if (edges[i].from != jump && edges[i].kind != FLOW_EDGE_FALL &&
            flow_map_is_inside(map, entry, edges[i].from))
            return false;
    return true;
}
