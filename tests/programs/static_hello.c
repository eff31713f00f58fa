/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A statically linked program: the C library, its IFUNCs included, is part of the main image. */
#include <stdio.h>
#include <string.h>

static volatile size_t total;

__attribute__((noinline, noclone)) static void greet(const char *who)
{
    total = total + strlen(who);
    printf("hello %s\n", who);
}

int main(void)
{
    greet("world");
    greet("static");
    greet("target");
    return total != 17;
}
