/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Walks its own stack by frame pointers, with no library's help, as profilers and crash reports do: each
 * return address must lie in the program's code. */
#include "harm.h"

#define FRAMED __attribute__((optimize("no-omit-frame-pointer")))
#define LEVELS 6

extern const char __executable_start[], etext[];

FRAMED CALLED static long count_callers(void)
{
    void *const *frame = __builtin_frame_address(0);
    long good = 0;

    for (int i = 0; i < LEVELS; i++) {
        const char *caller = frame[1];

        good += caller >= __executable_start && caller < etext;
        frame = frame[0];
    }
    return good;
}

FRAMED CALLED static long inside(int level)
{
    return level ? inside(level - 1) + 0 : count_callers();
}

static long work(void)
{
    long good = 0;

    for (int i = 0; i < 20; i++)
        good += inside(LEVELS);
    return good;
}

HARM_MAIN(20 * LEVELS)
