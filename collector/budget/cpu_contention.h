/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How often the recorder's own work is done on a processor that the target would have had.
 *
 * Where a processor is idle, what the recorder does there costs the target nothing. If each of N processors
 * is busy for a part B of the time, and they are so independently of each other, then B^N is the part of the
 * time in which there is none.
 */
#ifndef TRACECTL_COLLECTOR_BUDGET_CPU_CONTENTION_H
#define TRACECTL_COLLECTOR_BUDGET_CPU_CONTENTION_H

#include <stdint.h>

/* All zero: nothing is known yet. */
struct cpu_contention {
    double part;         /* of the time: no processor is idle; 0 as long as that is not known */
    uint64_t busy, all;  /* ticks of all processors at the last sample */
    uint64_t sampled_ns; /* CLOCK_MONOTONIC */
    unsigned processors; /* at the last sample */
};

/* Reads how busy the processors have been since the last time, if that was some tenths of a second ago. */
void cpu_contention_sample(struct cpu_contention *contention, uint64_t now_ns);

/* The same from the text of /proc/stat. */
void cpu_contention_parse(struct cpu_contention *contention, const char *stat);

#endif
