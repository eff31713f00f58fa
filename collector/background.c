/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/background.h"

#include <errno.h>
#include <math.h>
#include <sys/resource.h>
#include <unistd.h>

#include "collector/privileges.h"

#define NICE_MOST 19
#define NICE_STEP 1.25 /* each weighs so much less (sched_prio_to_weight, kernel/sched/core.c) */

/* Beside one thread of nice 0 on its processor. */
static int nice_for(double share)
{
    double part = share * (double)sysconf(_SC_NPROCESSORS_ONLN);

    if (!(part < 0.5))
        return 0;
    int nice = (int)(log(1 / part - 1) / log(NICE_STEP) + 0.5);

    return nice < NICE_MOST ? nice : NICE_MOST;
}

struct background background_begin(double share)
{
    struct background background = {0};
    int nice = share > 0 ? nice_for(share) : 0;

    errno = 0;
    background.nice = getpriority(PRIO_PROCESS, 0);
    if (errno || nice <= background.nice || privileges_missing(PRIVILEGE_SCHEDULE))
        return background;
    background.changed = !setpriority(PRIO_PROCESS, 0, nice);
    return background;
}

void background_end(const struct background *background)
{
    if (background->changed)
        setpriority(PRIO_PROCESS, 0, background->nice);
}
