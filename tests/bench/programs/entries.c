/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: entries CALLS
 *
 * Calls functions that begin as optimised code mostly does: with a mov or a sub, which the kernel must
 * single-step, and a branch a little later. Makes CALLS calls of walk, odd and even together. Built with
 * -fno-shrink-wrap, so that odd begins with a sub.
 */
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile unsigned long sink;

NOINLINE static void note(unsigned long value)
{
    sink = value;
}

NOINLINE unsigned long odd(unsigned long value, unsigned long limit)
{
    if (limit > 8) /* never */
        note(value);
    return value * 3 + 1;
}

NOINLINE unsigned long even(unsigned long value, unsigned long limit)
{
    if (value == limit)
        sink = value;
    return value / 2;
}

NOINLINE unsigned long walk(unsigned long value, unsigned long calls)
{
    while (calls--)
        value = value & 1 ? odd(value, calls) : even(value, calls);
    sink = value;
    return value;
}

int main(int argc, char **argv)
{
    unsigned long calls = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000, made = 0;

    for (unsigned long i = 1; made < calls; i++, made += 10)
        walk(i, 9);
    printf("calls %lu\n", made);
    return 0;
}
