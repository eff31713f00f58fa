/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/budget/crowding.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOOK_NS 300000000u
#define STAT_BYTES 65536u /* the lines of 500 processors; of more, some are not counted */

static unsigned count_processors(const char *stat)
{
    unsigned count = 0;

    for (const char *line = strstr(stat, "\ncpu"); line; line = strstr(line + 1, "\ncpu"))
        count++;
    return count;
}

void crowding_take(struct crowding *crowding, const char *stat)
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
    crowding->processors = count_processors(stat);
    if (crowding->all && all > crowding->all && busy >= crowding->busy)
        crowding->part = pow((double)(busy - crowding->busy) / (double)(all - crowding->all),
                             crowding->processors ? crowding->processors : 1);
    crowding->busy = busy;
    crowding->all = all;
}

void crowding_look(struct crowding *crowding, uint64_t now_ns)
{
    char text[STAT_BYTES];
    ssize_t size;
    int file;

    if (crowding->looked_ns && now_ns - crowding->looked_ns < LOOK_NS)
        return;
    file = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    size = read(file, text, sizeof(text) - 1);
    close(file);
    if (size <= 0)
        return;
    text[size] = '\0';
    crowding->looked_ns = now_ns;
    crowding_take(crowding, text);
}
