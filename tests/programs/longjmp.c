/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* longjmp over several frames: the functions jumped over never return, the one that called setjmp goes on. */
#include <setjmp.h>

#include "truth.h"

static jmp_buf checkpoint;
static volatile int jumps;

NOINLINE static int fine(int n)
{
    ENTER();
    LEAVE();
    return n + 1;
}

NOINLINE static void deep(int level)
{
    ENTER();
    fine(level);
    if (level == 0) {
        jumps = jumps + 1;
        longjmp(checkpoint, 1);
    }
    deep(level - 1);
    fine(level);
    LEAVE();
}

NOINLINE static int attempt(int level)
{
    int depth;

    ENTER();
    depth = truth_depth;
    if (setjmp(checkpoint) == 0) {
        deep(level);
    } else {
        truth_depth = depth;
        fine(-level);
    }
    LEAVE();
    return level;
}

int main(void)
{
    int sum = 0;

    ENTER();
    for (int i = 0; i < 50; i++) {
        sum += attempt(i % 7);
        sum += fine(i);
    }
    printf("longjmp %d jumps, sum %d\n", jumps, sum);
    LEAVE();
    return truth_print();
}
