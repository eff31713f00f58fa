/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The heap (brk) grows by more than a jump reaches, as in a program that uses nothing else for its memory. */
#include "harm.h"

#define STEP (64L << 20)
#define STEPS 48L

CALLED static long grow(void)
{
    return sbrk(STEP) != (void *)-1;
}

static long work(void)
{
    long steps = 0;

    while (steps < STEPS && grow())
        steps++;
    sbrk(-steps * STEP);
    return steps;
}

HARM_MAIN(STEPS)
