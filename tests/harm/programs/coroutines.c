/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Coroutines by makecontext on stacks from malloc and on a piece of the main stack, resumed at different
 * depths, one of them never resumed to its end.
 */
#include <stdlib.h>
#include <ucontext.h>

#include "harm.h"

enum { COROUTINES = 4, TURNS = 50, STACK = 65536 };

static ucontext_t scheduler, contexts[COROUTINES];
static long produced;
static int done;

CALLED static void yield_value(int self, long value)
{
    produced += value;
    swapcontext(&contexts[self], &scheduler);
}

CALLED static void produce_below(int self, int level, long value)
{
    if (level == 0)
        yield_value(self, value);
    else
        produce_below(self, level - 1, value);
}

CALLED static void body(int self)
{
    for (int i = 0; i < TURNS; i++)
        produce_below(self, i % 7, i);
    done++;
}

CALLED static void prepare(int self, void *stack)
{
    getcontext(&contexts[self]);
    contexts[self].uc_stack.ss_sp = stack;
    contexts[self].uc_stack.ss_size = STACK;
    contexts[self].uc_link = &scheduler;
    makecontext(&contexts[self], (void (*)(void))body, 1, self);
}

CALLED static void resume_below(int self, int level)
{
    if (level == 0)
        swapcontext(&scheduler, &contexts[self]);
    else
        resume_below(self, level - 1);
}

static long work(void)
{
    char here[STACK];
    char *stacks[COROUTINES] = {here};

    produced = done = 0;
    for (int i = 0; i < COROUTINES; i++) {
        stacks[i] = i == 0 ? here : malloc(STACK);
        prepare(i, stacks[i]);
    }
    /* The last one is left in its last turn but one. */
    for (int i = 0; i <= TURNS; i++) {
        for (int c = 0; c < COROUTINES - (i >= TURNS - 1); c++)
            resume_below(c, i % 3);
    }
    for (int i = 1; i < COROUTINES; i++)
        free(stacks[i]);
    return produced + 1000000L * done;
}

HARM_MAIN(4 * 1225L - 49 + 3000000)
