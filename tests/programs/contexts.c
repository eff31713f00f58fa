/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two coroutines on stacks of their own (makecontext) that take turns. Only the numbers of calls are well
 * defined: prints "NAME COUNT", one a line.
 */
#include <stdio.h>
#include <ucontext.h>

enum { TURNS = 25, STACK = 65536 };
#define NOINLINE __attribute__((noinline, noclone))

static ucontext_t main_context, contexts[2];
static char stacks[2][STACK];
static volatile int steps, turns;

NOINLINE static void step(int n)
{
    steps = steps + 1;
}

NOINLINE static void turn(int self)
{
    turns = turns + 1;
    step(self);
    swapcontext(&contexts[self], &contexts[1 - self]);
    step(self);
}

static void coroutine(int self)
{
    for (int i = 0; i < TURNS; i++)
        turn(self);
}

int main(void)
{
    for (int i = 0; i < 2; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = stacks[i];
        contexts[i].uc_stack.ss_size = STACK;
        contexts[i].uc_link = &main_context;
        makecontext(&contexts[i], (void (*)(void))coroutine, 1, i);
    }
    swapcontext(&main_context, &contexts[0]);
    printf("step %d\nturn %d\nmain 1\n", steps, turns);
    return 0;
}
