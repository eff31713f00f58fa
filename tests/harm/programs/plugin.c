/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The library that dlopens.c opens and closes. */
#define CALLED __attribute__((noipa))

long plugin_run(long n, long (*back)(long));

CALLED static long plugin_inner(long n)
{
    return n * 3;
}

CALLED long plugin_run(long n, long (*back)(long))
{
    return plugin_inner(n) + back(n);
}
