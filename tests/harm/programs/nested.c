/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* leaf() is called by middle() alone, twice, and that by outer(): what is recorded otherwise is wrong. */
#include "harm.h"

CALLED static long leaf(long x)
{
    return x + 1;
}

CALLED static long middle(long x)
{
    return leaf(x) + leaf(x);
}

CALLED static long outer(long x)
{
    return middle(x) + middle(x);
}

static long work(void)
{
    return outer(1);
}

HARM_MAIN(8)
