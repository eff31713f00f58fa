/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Replaces the return addresses of a function by a trampoline of its own, as a profiler in the program does: what is
 * called from there has no caller that could be seen, and the trampoline fits no other's return address. */
#include "harm.h"

enum { DEPTH = 16 };

static void *kept[DEPTH];
static int depth;

CALLED void *give_back(void) /* the name is the trampoline's */
{
    return kept[--depth];
}

__asm__(
    ".text\n"
    "trampoline:\n"
    "    push %rax\n"
    "    push %rax\n"
    "    call give_back\n"
    "    mov %rax, 8(%rsp)\n"
    "    pop %rax\n"
    "    ret\n");

void trampoline(void);

CALLED static long leaf(long n)
{
    return n;
}

CALLED static long hooked(long n)
{
    void **frame = __builtin_frame_address(0);

    kept[depth++] = frame[1];
    frame[1] = (void *)trampoline;
    return n ? leaf(n) + hooked(n - 1) : 0;
}

CALLED static long work(void)
{
    long sum = 0;

    for (long i = 0; i < 5; i++)
        sum += hooked(i) + leaf(i);
    return sum;
}

HARM_MAIN(30)
