/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/govern/turns.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "collector/target/process.h"

#define BUSY_PART 0.05 /* of what all have together */

void turns_between(const struct turn_taker *before, size_t before_count, const struct turn_taker *after,
                   size_t after_count, double seconds, struct turns *ret_turns)
{
    uint64_t turns = 0, most = 0, cpu = 0;
    size_t old = 0;

    for (size_t i = 0; i < after_count; i++) {
        uint64_t more;

        while (old < before_count && before[old].pid < after[i].pid)
            old++;
        if (old == before_count || before[old].pid != after[i].pid || after[i].turns < before[old].turns ||
            after[i].cpu_ns < before[old].cpu_ns)
            continue;
        more = after[i].turns - before[old].turns;
        turns += more;
        most = more > most ? more : most;
        cpu += after[i].cpu_ns - before[old].cpu_ns;
    }
    *ret_turns = (struct turns){.seconds = seconds, .cpu_ns = (double)cpu / seconds};
    /* The one with the most follows another at least as often as the others have turns. */
    ret_turns->changes = (double)(2 * (turns - most) < turns ? 2 * (turns - most) : turns) / seconds;
    old = 0;
    for (size_t i = 0; i < after_count; i++) {
        while (old < before_count && before[old].pid < after[i].pid)
            old++;
        ret_turns->busy += old < before_count && before[old].pid == after[i].pid &&
                           after[i].cpu_ns > before[old].cpu_ns &&
                           (double)(after[i].cpu_ns - before[old].cpu_ns) > BUSY_PART * (double)cpu;
    }
}

/* False: it is gone, or the kernel does not say. */
static bool read_taker(pid_t pid, struct turn_taker *taker)
{
    AUTO_FCLOSE FILE *file = NULL;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
    file = fopen(path, "re");
    taker->pid = pid;
    return file && fscanf(file, "%" SCNu64 " %*u %" SCNu64, &taker->cpu_ns, &taker->turns) == 2;
}

int turns_read(dev_t device, ino_t inode, struct turn_taker **ret_takers, size_t *ret_count)
{
    AUTO_FREE struct turn_taker *takers = NULL;
    AUTO_FREE pid_t *pids = NULL;
    size_t count, kept = 0;
    int r = process_runners(device, inode, &pids, &count);

    if (r)
        return r;
    takers = calloc(count + 1, sizeof(*takers));
    if (!takers)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        kept += read_taker(pids[i], &takers[kept]);
    *ret_takers = take_pointer(takers);
    *ret_count = kept;
    return 0;
}
