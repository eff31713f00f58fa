/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/budget/own_work.h"

#include <sys/resource.h>

#include "base/clock.h"

uint64_t own_work_cpu_ns(void)
{
    struct rusage helpers;
    uint64_t own = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

    if (getrusage(RUSAGE_CHILDREN, &helpers))
        return own;
    return own + 1000 * ((uint64_t)(helpers.ru_utime.tv_usec + helpers.ru_stime.tv_usec) +
                         1000000u * (uint64_t)(helpers.ru_utime.tv_sec + helpers.ru_stime.tv_sec));
}
