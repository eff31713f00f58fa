/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls that go from one stack to another and come back: in a variable, in a mapping above and one below, on
 * the heap, and inside the thread's own stack. The code that switches is the program's own, as in libraries
 * of coroutines: nothing tells the system of these stacks.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "harm.h"

enum { SIZE = 65536, STACKS = 4, ROUNDS = 5 };

static char in_variable[SIZE] __attribute__((aligned(16)));
static char *stacks[STACKS];

/* Calls `function` with rsp at the end of a stack, and comes back. */
#define ON_STACK(stack, function, argument) \
    ({ \
        long result_; \
        __asm__ volatile("movq %%rsp, %%rbx\n\tmovq %[top], %%rsp\n\tcall *%[code]\n\tmovq %%rbx, %%rsp" \
                         : "=a"(result_) \
                         : [top] "r"((stack) + SIZE), [code] "r"(function), "D"((long)(argument)) \
                         : "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc"); \
        result_; \
    })

CALLED static long leaf(long number)
{
    return number + 1;
}

CALLED static long inner(long number)
{
    return leaf(number) + leaf(number);
}

/* Each level on the next stack, which may lie above or below. */
CALLED static long outer(long level)
{
    long sum = inner(level);

    if (level)
        sum += ON_STACK(stacks[level - 1], outer, level - 1);
    return sum + leaf(level);
}

CALLED static long on_part_of_own_stack(long level)
{
    char part[SIZE] __attribute__((aligned(16)));

    return ON_STACK(part, outer, level) + inner(0);
}

static long work(void)
{
    long sum = 0;

    if (!stacks[0]) {
        stacks[0] = in_variable;
        stacks[1] = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        stacks[2] = aligned_alloc(16, SIZE);
        stacks[3] =
            mmap((void *)0x10000000, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    for (int i = 0; i < ROUNDS; i++)
        sum += outer(STACKS) + on_part_of_own_stack(2);
    return sum;
}

HARM_MAIN(325)
