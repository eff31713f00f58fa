/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/budget/cpu_contention.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SAMPLE_NS 300000000u
#define STAT_BYTES 65536u /* the lines of 500 processors; of more, some are not counted */

static unsigned count_processors(const char *stat)
{
    unsigned count = 0;

    for (const char *line = strstr(stat, "\ncpu"); line; line = strstr(line + 1, "\ncpu"))
        count++;
    return count;
}

void cpu_contention_parse(struct cpu_contention *contention, const char *stat)
{
    uint64_t user, nice, system, idle, iowait, irq, softirq, stolen, busy, all;

    /* The times of guests are in user and nice; see proc_stat(5). */
    if (sscanf(stat,
               "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %" SCNu64,
               &user, &nice, &system, &idle, &iowait, &irq, &softirq, &stolen) != 8)
        return;
    busy = user + nice + system + irq + softirq + stolen;
    all = busy + idle + iowait;
    contention->processors = count_processors(stat);
    if (contention->all && all > contention->all && busy >= contention->busy)
        contention->part = pow((double)(busy - contention->busy) / (double)(all - contention->all),
                               contention->processors ? contention->processors : 1);
    contention->busy = busy;
    contention->all = all;
}

void cpu_contention_sample(struct cpu_contention *contention, uint64_t now_ns)
{
    char text[STAT_BYTES];
    ssize_t size;
    int file;

    if (contention->sampled_ns && now_ns - contention->sampled_ns < SAMPLE_NS)
        return;
    file = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    size = read(file, text, sizeof(text) - 1);
    close(file);
    if (size <= 0)
        return;
    text[size] = '\0';
    contention->sampled_ns = now_ns;
    cpu_contention_parse(contention, text);
}
