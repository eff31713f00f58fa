/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How often the processors switch from one process to another that runs the same program.
 *
 * A page of code that has a breakpoint is a copy of each process's own. Processes that take turns find in the
 * caches what the one before them has used, as long as they share it; of copies they find what they have used
 * themselves, long ago.
 */
#ifndef TRACECTL_COLLECTOR_BUDGET_CONTEXT_SWITCHES_H
#define TRACECTL_COLLECTOR_BUDGET_CONTEXT_SWITCHES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What a process has had so far. */
struct process_switches {
    pid_t pid;
    uint64_t cpu_ns, switches; /* of its main thread */
};

struct switch_rates {
    double seconds; /* of which this is: 0: nothing is known yet */
    double cpu_ns;  /* a second, of all of them */
    double changes; /* a second, from one to another */
    unsigned busy;  /* processes that had a part worth mentioning */
};

/* What those had that are in both lists, `seconds` apart; both are sorted by pid. One that has begun anew
 * counts as not there before. */
void context_switches_between(const struct process_switches *before, size_t before_count,
                              const struct process_switches *after, size_t after_count, double seconds,
                              struct switch_rates *ret_switches);

/* The processes that run the program in that file, sorted by pid. The caller frees them. -ENOMEM. */
int context_switches_read(dev_t device, ino_t inode, struct process_switches **ret_switches,
                          size_t *ret_count);

#endif
