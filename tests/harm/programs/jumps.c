/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* longjmp over frames, out of a qsort comparison, and siglongjmp out of a signal handler on an alternate
 * stack. */
#include <setjmp.h>
#include <stdlib.h>

#include "harm.h"

static jmp_buf target;
static sigjmp_buf signal_target;
static int budget;

CALLED static void jump_below(int level)
{
    if (level == 0)
        longjmp(target, 1);
    jump_below(level - 1);
}

CALLED static long fine(long n)
{
    return n + 1;
}

CALLED static long over_frames(int level)
{
    if (setjmp(target) == 0) {
        jump_below(level);
        return -1;
    }
    return fine(level);
}

CALLED static int compare(const void *a, const void *b)
{
    if (--budget == 0)
        longjmp(target, 1);
    return *(const int *)a - *(const int *)b;
}

CALLED static long over_library(void)
{
    int numbers[] = {5, 3, 8, 1, 9, 2, 7};

    budget = 6;
    if (setjmp(target) == 0) {
        qsort(numbers, 7, sizeof(numbers[0]), compare);
        return -1;
    }
    return fine(0);
}

CALLED static void on_signal(int number)
{
    siglongjmp(signal_target, fine(number) > 0);
}

CALLED static long over_signal(void)
{
    if (sigsetjmp(signal_target, 1) == 0) {
        raise(SIGUSR1);
        return -1;
    }
    return fine(1);
}

static long work(void)
{
    static char stack[65536];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    long sum = 0;

    if (sigaltstack(&alternate, NULL) || sigaction(SIGUSR1, &action, NULL))
        return -1;
    for (int i = 0; i < 40; i++)
        sum += over_frames(i) + over_library() + over_signal();
    return sum;
}

/* i + 1, 1 and 2 for i from 0 to 39 */
HARM_MAIN(780 + 40 * 4L)
