/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tail calls, built with -O2: a function's last call jumps and takes its frame over. The caller's call is
 * over at that moment, so that in the log caller and callee stand beside each other, not inside each other.
 */
#include "truth.h"

#define NOIPA __attribute__((noipa))

static volatile int sink;

NOIPA static int leaf(int n)
{
    ENTER();
    sink = n;
    LEAVE();
    return n + 1;
}

NOIPA static int third(int n)
{
    ENTER();
    sink = n;
    LEAVE();
    return leaf(n * 2);
}

NOIPA static int second(int n)
{
    ENTER();
    sink = leaf(n); /* a real call */
    LEAVE();
    return third(n + 3);
}

NOIPA static int first(int n)
{
    ENTER();
    sink = n;
    LEAVE();
    return second(n + 1);
}

NOIPA static int ping(int n);

NOIPA static int pong(int n)
{
    ENTER();
    sink = n;
    LEAVE();
    return ping(n - 1);
}

NOIPA static int ping(int n)
{
    ENTER();
    sink = n;
    LEAVE();
    return n <= 0 ? leaf(n) : pong(n - 1);
}

NOIPA static int caller(int n)
{
    int result;

    ENTER();
    result = first(n) + ping(1000);
    LEAVE();
    return result;
}

int main(void)
{
    int sum = 0;

    ENTER();
    for (int i = 0; i < 5; i++)
        sum += caller(i);
    printf("tail_calls %d\n", sum);
    LEAVE();
    return truth_print();
}
