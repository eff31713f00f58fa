/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which of its planted bugs a program shall have: found without a call that would show in a trace. */
#ifndef TRACECTL_TESTS_PLANTED_H
#define TRACECTL_TESTS_PLANTED_H

#include <stdbool.h>

#define LEAVES_NO_TRACE __attribute__((always_inline)) static inline

LEAVES_NO_TRACE bool same_word(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

#endif
