/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/process/address_gap.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "collector/process/map_lines.h"

#define LOWEST 0x10000ull            /* vm.mmap_min_addr as it is nearly everywhere */
#define HIGHEST 0x7ffffffff000ull    /* the end of user space */
#define REACH ((1ull << 31) - 65536) /* of a 32-bit distance, with room for the instruction itself */
#define HEAP_GROWS (1ull << 40)      /* no heap (brk) gets so large */
#define GUARD 65536ull               /* kept free on either side, for stacks and guard pages that grow */

static int open_maps(pid_t pid, struct map_lines *ret_lines, struct error *err)
{
    int r = map_lines_open(pid, ret_lines);

    return r ? error_set(err, r, NULL, "cannot read the maps of process %d", (int)pid) : 0;
}

/* The part of the gap from `low` to `high` that is within reach of all of `start` to `end`. */
static bool within_reach(uint64_t start, uint64_t end, uint64_t *low, uint64_t *high)
{
    uint64_t first = end > REACH ? end - REACH : 0, last = start + REACH;

    *low = (*low > LOWEST ? *low + GUARD : LOWEST);
    *high -= *high > GUARD ? GUARD : *high;
    if (*low < first)
        *low = (first + 4095) & ~4095ull;
    if (*high > last)
        *high = last & ~4095ull;
    return *low < *high;
}

/* Where the heap of the process begins (brk), whether it has one yet or not. 0: not known. */
static uint64_t heap_begins(pid_t pid)
{
    enum { START_BRK = 47, BEHIND_NAME = 3 }; /* numbers of fields, from 1 */
    AUTO_FCLOSE FILE *file = NULL;
    char path[64], line[1024], *field;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    field = file && fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
    for (int i = BEHIND_NAME; field && i <= START_BRK; i++)
        field = strchr(field + 1, ' ');
    return field ? strtoull(field, NULL, 10) : 0;
}

/* Free addresses, and what lies on either side. */
struct gap {
    uint64_t low, high;
    bool behind_heap, below_stack;
};

/* Leaves of the gap what is within reach of all of `start` to `end` and not for heap or stack to grow into.
 * False: nothing. */
static bool leave_usable(struct gap *gap, uint64_t start, uint64_t end, uint64_t heap)
{
    if (gap->below_stack)
        return false;
    if (gap->behind_heap)
        gap->low += HEAP_GROWS;
    if (heap >= gap->low && heap < gap->high && start > heap + HEAP_GROWS)
        gap->low = heap + HEAP_GROWS; /* there is none yet */
    else if (heap >= gap->low && heap < gap->high)
        gap->high = heap;
    return gap->high > gap->low && within_reach(start, end, &gap->low, &gap->high);
}

int address_gap_near(pid_t pid, uint64_t start, uint64_t end, size_t bytes, uint64_t *ret_address,
                     struct error *err)
{
    AUTO_MAP_LINES struct map_lines maps = {0};
    struct map_line line = {0};
    uint64_t heap = heap_begins(pid), below = 0, above = 0;
    struct gap next = {0}, gap;
    bool more;
    int r = open_maps(pid, &maps, err);

    if (r)
        return r;
    do {
        more = map_lines_next(&maps, &line);
        gap = next;
        gap.high = more && line.start < HIGHEST ? line.start : HIGHEST;
        gap.below_stack = more && !strcmp(line.name, "[stack]");
        next = (struct gap){.low = line.end, .behind_heap = more && !strcmp(line.name, "[heap]")};
        if (!leave_usable(&gap, start, end, heap) || gap.high - gap.low < bytes)
            continue;
        if (gap.high <= start)
            below = gap.high - bytes;
        else if (gap.low >= end && !above)
            above = gap.high - bytes;
    } while (more);
    if (!below && !above)
        return error_say(err, -ENOSPC, "no free addresses near its code that its heap does not need");
    *ret_address = below ? below : above;
    return 0;
}
