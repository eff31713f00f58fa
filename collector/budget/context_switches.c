/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/budget/context_switches.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "collector/process/process.h"

#define BUSY_PART 0.05 /* of what all have together */

static int by_pid(const void *left, const void *right)
{
    const struct process_switches *a = left, *b = right;

    return (a->pid > b->pid) - (a->pid < b->pid);
}

/* What a process has had since; nothing when it was not there before, or has begun anew. */
static struct process_switches had_since(const struct process_switches *before, size_t count,
                                         const struct process_switches *now)
{
    const struct process_switches *then = count ? bsearch(now, before, count, sizeof(*before), by_pid) : NULL;

    if (!then || now->switches < then->switches || now->cpu_ns < then->cpu_ns)
        return (struct process_switches){.pid = now->pid};
    return (struct process_switches){now->pid, now->cpu_ns - then->cpu_ns, now->switches - then->switches};
}

void context_switches_between(const struct process_switches *before, size_t before_count,
                              const struct process_switches *after, size_t after_count, double seconds,
                              struct switch_rates *ret_switches)
{
    uint64_t switches = 0, most = 0, cpu = 0, others;

    for (size_t i = 0; i < after_count; i++) {
        struct process_switches had = had_since(before, before_count, &after[i]);

        switches += had.switches;
        most = had.switches > most ? had.switches : most;
        cpu += had.cpu_ns;
    }
    others = switches -
             most; /* the one with the most follows another at most as often as the others have switches */
    *ret_switches = (struct switch_rates){
        .seconds = seconds,
        .cpu_ns = (double)cpu / seconds,
        .changes = (double)(2 * others < switches ? 2 * others : switches) / seconds,
    };
    for (size_t i = 0; i < after_count; i++)
        ret_switches->busy +=
            (double)had_since(before, before_count, &after[i]).cpu_ns > BUSY_PART * (double)cpu;
}

/* False: it is gone, or the kernel does not say. */
static bool read_switches(pid_t pid, struct process_switches *switches)
{
    AUTO_FCLOSE FILE *file = NULL;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
    file = fopen(path, "re");
    switches->pid = pid;
    return file && fscanf(file, "%" SCNu64 " %*u %" SCNu64, &switches->cpu_ns, &switches->switches) == 2;
}

int context_switches_read(dev_t device, ino_t inode, struct process_switches **ret_switches,
                          size_t *ret_count)
{
    AUTO_FREE struct process_switches *switches = NULL;
    AUTO_FREE pid_t *pids = NULL;
    size_t count, kept = 0;
    int r = process_runners(device, inode, &pids, &count);

    if (r)
        return r;
    switches = calloc(count + 1, sizeof(*switches));
    if (!switches)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        kept += read_switches(pids[i], &switches[kept]);
    *ret_switches = take_pointer(switches);
    *ret_count = kept;
    return 0;
}
