/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/flow/branch_targets.h"

#include <string.h>

#include "base/array.h"

#define CALL_REL32 0xe8
#define JMP_REL32 0xe9
#define TWO_BYTES 0x0f
#define XBEGIN 0xc7
#define XBEGIN_MODRM 0xf8

/* The bytes of opcode before the 32-bit distance of the long branch that `code` may be; 0: it is none. */
static size_t opcode_length(const uint8_t *code)
{
    if (code[0] == CALL_REL32 || code[0] == JMP_REL32)
        return 1;
    if (code[0] == TWO_BYTES)
        return (code[1] & 0xf0) == 0x80 ? 2 : 0;
    return code[0] == XBEGIN && code[1] == XBEGIN_MODRM ? 2 : 0;
}

static void mark_region(struct flow_map *map, const struct flow_region *region)
{
    int32_t distance;

    for (size_t at = 0; at + 1 + sizeof(distance) <= region->size; at++) {
        size_t length = opcode_length(region->code + at);

        if (length == 0 || at + length + sizeof(distance) > region->size)
            continue;
        memcpy(&distance, region->code + at + length, sizeof(distance));
        flow_map_set(map, region->address + at + length + sizeof(distance) + (uint64_t)(int64_t)distance,
                     FLOW_STRAY);
    }
}

void branch_targets_mark(struct flow_map *map)
{
    size_t count;
    const struct flow_region *regions = flow_map_regions(map, &count);

    for (size_t i = 0; i < count; i++)
        mark_region(map, &regions[i]);
}

bool branch_targets_within(const struct flow_map *map, uint64_t first, uint64_t last)
{
    static const enum flow_mark marks[] = {FLOW_TARGET, FLOW_TAKEN, FLOW_LISTED, FLOW_STRAY};

    for (uint64_t at = 0; at <= last - first; at++)
        for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
            if (flow_map_has(map, first + at, marks[i]))
                return true;
    return false;
}
