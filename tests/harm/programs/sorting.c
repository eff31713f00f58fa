/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Callbacks out of the C library: qsort, bsearch, twalk, and qsort inside of a comparison. */
#include <search.h>
#include <stdlib.h>

#include "harm.h"

enum { N = 60 };

static long walked;

CALLED static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

CALLED static int compare_sorting(const void *a, const void *b)
{
    int small[] = {3, 1, 2, *(const int *)a % 5};

    qsort(small, 4, sizeof(small[0]), compare);
    return compare(a, b) + (small[0] > 3);
}

CALLED static void visit(const void *node, VISIT which, int depth)
{
    if (which == postorder || which == leaf)
        walked += **(int *const *)node;
}

CALLED static void fill(int *numbers)
{
    unsigned seed = 1;

    for (int i = 0; i < N; i++) {
        seed = seed * 1103515245 + 12345;
        numbers[i] = (int)(seed >> 16) % 1000;
    }
}

CALLED static long sorted(int (*how)(const void *, const void *))
{
    int numbers[N];
    long good = 0;

    fill(numbers);
    qsort(numbers, N, sizeof(numbers[0]), how);
    for (int i = 1; i < N; i++)
        good += numbers[i - 1] <= numbers[i];
    for (int i = 0; i < N; i += 10)
        good += bsearch(&numbers[i], numbers, N, sizeof(numbers[0]), compare) != NULL;
    return good;
}

static long work(void)
{
    static int keys[] = {5, 2, 8, 1, 9, 3};
    void *root = NULL;

    walked = 0;
    for (int i = 0; i < 6; i++)
        tsearch(&keys[i], &root, compare);
    twalk(root, visit);
    for (int i = 0; i < 6; i++)
        tdelete(&keys[i], &root, compare);
    return walked + sorted(compare) + sorted(compare_sorting);
}

HARM_MAIN(28 + 2 * (N - 1 + N / 10L))
