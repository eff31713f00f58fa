/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A function that wants to know who calls it, as integrity checks and memory profilers do: its return address
 * must lie in the program's code. */
#include "harm.h"

extern const char __executable_start[], etext[];

CALLED static long called_from_here(void)
{
    const char *caller = __builtin_return_address(0);

    return caller >= __executable_start && caller < etext;
}

static long work(void)
{
    long good = 0;

    for (int i = 0; i < 100; i++)
        good += called_from_here();
    return good;
}

HARM_MAIN(100)
