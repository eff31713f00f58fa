/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Recursion: linear, binary, nested, mutual, and 10,000 levels deep. */
#include "truth.h"

enum { DEPTH = 10000 };

NOINLINE static unsigned long factorial(unsigned long n)
{
    unsigned long result;

    ENTER();
    result = n < 2 ? 1 : n * factorial(n - 1);
    LEAVE();
    return result;
}

NOINLINE static unsigned long fib(unsigned long n)
{
    unsigned long result;

    ENTER();
    result = n < 2 ? n : fib(n - 1) + fib(n - 2);
    LEAVE();
    return result;
}

NOINLINE static unsigned long ackermann(unsigned long m, unsigned long n)
{
    unsigned long result;

    ENTER();
    if (m == 0)
        result = n + 1;
    else if (n == 0)
        result = ackermann(m - 1, 1);
    else
        result = ackermann(m - 1, ackermann(m, n - 1));
    LEAVE();
    return result;
}

NOINLINE static int is_odd(int n);

NOINLINE static int is_even(int n)
{
    int result;

    ENTER();
    result = n == 0 || is_odd(n - 1);
    LEAVE();
    return result;
}

NOINLINE static int is_odd(int n)
{
    int result;

    ENTER();
    result = n != 0 && is_even(n - 1);
    LEAVE();
    return result;
}

NOINLINE static int bottom(int level)
{
    ENTER();
    LEAVE();
    return level;
}

NOINLINE static int descend(int level)
{
    int result;

    ENTER();
    result = 1 + (level == DEPTH ? bottom(0) : descend(level + 1));
    LEAVE();
    return result;
}

int main(void)
{
    ENTER();
    printf("factorial %lu\n", factorial(12));
    printf("fib %lu\n", fib(12));
    printf("ackermann %lu\n", ackermann(2, 3));
    printf("is_even %d\n", is_even(30));
    printf("descend %d\n", descend(1));
    LEAVE();
    return truth_print();
}
