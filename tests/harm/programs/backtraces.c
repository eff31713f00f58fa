/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A program that looks at its own stack: backtrace() out of frames of its own, also below a qsort. */
#include <execinfo.h>
#include <stdlib.h>

#include "harm.h"

enum { FRAMES = 64 };

CALLED static long frames_here(void)
{
    void *frames[FRAMES];

    return backtrace(frames, FRAMES);
}

CALLED static long frames_below(int level)
{
    return level == 0 ? frames_here() : frames_below(level - 1) + 0;
}

static long in_comparison;

CALLED static int compare(const void *a, const void *b)
{
    in_comparison += frames_below(2);
    return 0;
}

static long work(void)
{
    int pair[] = {1, 2};
    long base = frames_below(0), sum = 0;

    in_comparison = 0;
    for (int i = 0; i < 20; i++)
        sum += frames_below(i) - base;
    qsort(pair, 2, sizeof(pair[0]), compare);
    return sum + (in_comparison > base + 3);
}

HARM_MAIN(190 + 1)
