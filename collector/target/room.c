/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/target/room.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define LOWEST 0x10000ull            /* vm.mmap_min_addr as it is nearly everywhere */
#define HIGHEST 0x7ffffffff000ull    /* the end of user space */
#define REACH ((1ull << 31) - 65536) /* of a 32-bit distance, with room for the instruction itself */
#define GUARD 65536ull               /* kept free on either side, for stacks and guard pages that grow */

static FILE *open_maps(pid_t pid, struct error *err)
{
    char path[64];
    FILE *maps;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    maps = fopen(path, "re");
    if (!maps)
        error_set(err, errno == ENOENT ? -ESRCH : -errno, NULL, "cannot read %s", path);
    return maps;
}

static bool read_mapping(FILE *maps, uint64_t *ret_start, uint64_t *ret_end, char *line, size_t size)
{
    return fgets(line, (int)size, maps) && sscanf(line, "%" SCNx64 "-%" SCNx64, ret_start, ret_end) == 2;
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
    AUTO_FCLOSE FILE *maps = open_maps(pid, err);
    uint64_t from = 0, to = 0, before = 0, below = 0, above = 0;
    char line[512];
    bool more;

    if (!maps)
        return err ? err->code : -ESRCH;
    do {
        uint64_t low = before, high;

        more = read_mapping(maps, &from, &to, line, sizeof(line));
        high = more && from < HIGHEST ? from : HIGHEST;
        if (high > low && within_reach(start, end, &low, &high) && high - low >= bytes) {
            if (high <= start)
                below = high - bytes;
            else if (low >= end)
                above = high - bytes;
        }
        before = to;
    } while (more);
    if (!below && !above)
        return error_say(err, -ENOSPC, "no free addresses near the program's code");
    *ret_address = below ? below : above;
    return 0;
}

int room_apart(pid_t pid, size_t bytes, uint64_t *ret_address, struct error *err)
{
    AUTO_FCLOSE FILE *maps = open_maps(pid, err);
    uint64_t from = 0, to = 0, before = LOWEST, best = 0, most = 0;
    char line[512];

    if (!maps)
        return err ? err->code : -ESRCH;
    while (read_mapping(maps, &from, &to, line, sizeof(line))) {
        if (from < HIGHEST && from > before && from - before > most) {
            most = from - before;
            best = before + most / 2;
        }
        before = to;
    }
    if (most / 2 < bytes + GUARD)
        return error_say(err, -ENOSPC, "no free addresses");
    *ret_address = best & ~4095ull;
    return 0;
}

int room_of_vdso(pid_t pid, uint64_t *ret_start, uint64_t *ret_end, struct error *err)
{
    AUTO_FCLOSE FILE *maps = open_maps(pid, err);
    char line[512];

    if (!maps)
        return err ? err->code : -ESRCH;
    while (read_mapping(maps, ret_start, ret_end, line, sizeof(line)))
        if (strstr(line, "[vdso]"))
            return 0;
    return error_say(err, -ENOENT, "it has no vDSO");
}
