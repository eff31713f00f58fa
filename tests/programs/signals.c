/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Signal handlers that call functions, on the interrupted stack and on an alternate one. */
#include <signal.h>

#include "truth.h"

static volatile int handled;

NOINLINE static void count_signal(int number)
{
    ENTER();
    handled = handled + (number == SIGUSR1 ? 1 : 100);
    LEAVE();
}

NOINLINE static void on_signal(int number)
{
    ENTER();
    count_signal(number);
    LEAVE();
}

NOINLINE static int before(int n)
{
    ENTER();
    LEAVE();
    return n + 1;
}

NOINLINE static int interrupted(int number)
{
    int result;

    ENTER();
    result = before(number);
    raise(number);
    result += before(result);
    LEAVE();
    return result;
}

static int set_handlers(void)
{
    static char stack[65536];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction here = {.sa_handler = on_signal};
    struct sigaction there = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};

    return sigaltstack(&alternate, NULL) || sigaction(SIGUSR1, &here, NULL) ||
           sigaction(SIGUSR2, &there, NULL);
}

int main(void)
{
    int sum = 0;

    if (set_handlers())
        return 1;
    ENTER();
    for (int i = 0; i < 20; i++) {
        sum += interrupted(SIGUSR1);
        sum += interrupted(SIGUSR2);
        sum += before(i);
    }
    printf("signals %d, sum %d\n", handled, sum);
    LEAVE();
    return truth_print();
}
