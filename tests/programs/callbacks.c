/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Functions called back by a library that is not traced, at several depths of the stack. */
#include <stdlib.h>

#include "truth.h"

enum { NUMBERS = 64 };

NOINLINE static int sign(int n)
{
    ENTER();
    LEAVE();
    return (n > 0) - (n < 0);
}

NOINLINE static int compare(const void *a, const void *b)
{
    int result;

    ENTER();
    result = sign(*(const int *)a - *(const int *)b);
    LEAVE();
    return result;
}

NOINLINE static void fill(int *numbers, unsigned int seed)
{
    ENTER();
    for (int i = 0; i < NUMBERS; i++) {
        seed = seed * 1103515245u + 12345u;
        numbers[i] = (int)(seed >> 16) % 1000;
    }
    LEAVE();
}

NOINLINE static int sort_and_find(unsigned int seed)
{
    int numbers[NUMBERS];
    int key;
    const int *found;

    ENTER();
    fill(numbers, seed);
    key = numbers[NUMBERS / 2];
    qsort(numbers, NUMBERS, sizeof(numbers[0]), compare);
    found = bsearch(&key, numbers, NUMBERS, sizeof(numbers[0]), compare);
    LEAVE();
    return found ? *found : -1;
}

int main(void)
{
    int sum = 0;

    ENTER();
    for (unsigned int i = 0; i < 10; i++)
        sum += sort_and_find(i);
    printf("callbacks %d\n", sum);
    LEAVE();
    return truth_print();
}
