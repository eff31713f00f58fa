/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A frame that grows without being written to: sort() calls before(), makes room on its stack, and has the C
 * library call compare(). By stack pointers before() may still be open then (its frame has not been reached,
 * and its return address still stands in its slot), so that compare() may be inside it or not.
 */
#include <alloca.h>
#include <stdlib.h>

#include "truth.h"

#define NOIPA __attribute__((noipa))

enum { ROOM = 8192 };

static volatile size_t room = ROOM;
static volatile int sink;
static char *volatile escaped;

NOIPA static int sign(int n)
{
    ENTER();
    LEAVE();
    return (n > 0) - (n < 0);
}

NOIPA static int compare(const void *a, const void *b)
{
    int result;

    ENTER();
    result = sign(*(const int *)a - *(const int *)b);
    LEAVE();
    return result;
}

NOIPA static void before(void)
{
    ENTER();
    sink++;
    LEAVE();
}

NOIPA static void after(void)
{
    ENTER();
    sink++;
    LEAVE();
}

NOIPA static void sort(int *numbers, size_t count)
{
    ENTER();
    before();
    escaped = alloca(room); /* never written to */
    qsort(numbers, count, sizeof(*numbers), compare);
    after();
    LEAVE();
}

NOIPA static void done(void)
{
    ENTER();
    sink++;
    LEAVE();
}

int main(void)
{
    int numbers[2] = {2, 1};

    ENTER();
    sort(numbers, 2);
    done();
    printf("alloca_frames %d %d\n", numbers[0], numbers[1]);
    LEAVE();
    return truth_print();
}
