/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/flow/branch_targets.h"

#include "base/array.h"
#include "image/arch/code_bytes.h"

static void mark_region(struct flow_map *map, const struct flow_region *region)
{
    for (size_t at = 0; at + 1 + CODE_DISTANCE_BYTES <= region->size; at++) {
        size_t lead = code_branch_lead(region->code + at);

        if (lead && at + lead + CODE_DISTANCE_BYTES <= region->size)
            flow_map_set(map, code_distance_target(region->code + at + lead, region->address + at + lead),
                         FLOW_STRAY);
    }
}

void branch_targets_mark(struct flow_map *map)
{
    size_t count;
    const struct flow_region *regions = flow_map_regions(map, &count);

    if (flow_map_has_mark(map, FLOW_STRAY))
        return;
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
