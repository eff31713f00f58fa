/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/target/room.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "collector/target/map_lines.h"

#define LOWEST 0x10000ull            /* vm.mmap_min_addr as it is nearly everywhere */
#define HIGHEST 0x7ffffffff000ull    /* the end of user space */
#define REACH ((1ull << 31) - 65536) /* of a 32-bit distance, with room for the instruction itself */
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

int room_near(pid_t pid, uint64_t start, uint64_t end, size_t bytes, uint64_t *ret_address, struct error *err)
{
    AUTO_MAP_LINES struct map_lines maps = {0};
    struct map_line line = {0};
    uint64_t before = 0, below = 0, above = 0;
    bool more;
    int r = open_maps(pid, &maps, err);

    if (r)
        return r;
    do {
        uint64_t low = before, high;

        more = map_lines_next(&maps, &line);
        high = more && line.start < HIGHEST ? line.start : HIGHEST;
        if (high > low && within_reach(start, end, &low, &high) && high - low >= bytes) {
            if (high <= start)
                below = high - bytes;
            else if (low >= end)
                above = high - bytes;
        }
        before = line.end;
    } while (more);
    if (!below && !above)
        return error_say(err, -ENOSPC, "no free addresses near the program's code");
    *ret_address = below ? below : above;
    return 0;
}

int room_apart(pid_t pid, size_t bytes, uint64_t *ret_address, struct error *err)
{
    AUTO_MAP_LINES struct map_lines maps = {0};
    uint64_t before = LOWEST, best = 0, most = 0;
    struct map_line line;
    int r = open_maps(pid, &maps, err);

    if (r)
        return r;
    while (map_lines_next(&maps, &line)) {
        if (line.start < HIGHEST && line.start > before && line.start - before > most) {
            most = line.start - before;
            best = before + most / 2;
        }
        before = line.end;
    }
    if (most / 2 < bytes + GUARD)
        return error_say(err, -ENOSPC, "no free addresses");
    *ret_address = best & ~4095ull;
    return 0;
}

int room_of_vdso(pid_t pid, uint64_t *ret_start, uint64_t *ret_end, struct error *err)
{
    AUTO_MAP_LINES struct map_lines maps = {0};
    struct map_line line;
    int r = open_maps(pid, &maps, err);

    if (r)
        return r;
    while (map_lines_next(&maps, &line)) {
        if (strcmp(line.name, "[vdso]") != 0)
            continue;
        *ret_start = line.start;
        *ret_end = line.end;
        return 0;
    }
    return error_say(err, -ENOENT, "it has no vDSO");
}
