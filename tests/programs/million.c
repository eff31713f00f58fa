/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: million [CALLS]          (default 1000000)
 *
 * Makes exactly CALLS calls of row, cell and leaf, in nested loops whose lengths vary, and prints how many of
 * each.
 */
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline, noclone))

static unsigned long left, rows, cells, leaves;
static volatile unsigned long sink;

/* Whether one more call may be made. */
static inline __attribute__((always_inline)) int take(void)
{
    if (left == 0)
        return 0;
    left--;
    return 1;
}

NOINLINE static void leaf(unsigned long n)
{
    leaves++;
    sink = sink * 31 + n;
}

NOINLINE static void cell(unsigned long n)
{
    cells++;
    for (unsigned long i = 0; i < n % 4 + 1 && take(); i++)
        leaf(i);
}

NOINLINE static void row(unsigned long n)
{
    rows++;
    for (unsigned long i = 0; i < n % 10 + 5 && take(); i++)
        cell(i);
}

int main(int argc, char **argv)
{
    left = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
    for (unsigned long i = 0; take(); i++)
        row(i);
    printf("row %lu\ncell %lu\nleaf %lu\nmain 1\n", rows, cells, leaves);
    return 0;
}
