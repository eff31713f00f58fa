/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a sample program says about itself, for the tests to compare a recording with.
 *
 * A function writes ENTER() first and LEAVE() before it returns; the calls are kept in a static log, in
 * order, each with its nesting. truth_print() at the end of main writes "DEPTH NAME" lines to the file that
 * $TRUTH_FILE names, if it is set. Everything here is inlined: the header adds no function that a tracer
 * would see. One thread only.
 */
#ifndef TESTS_PROGRAMS_TRUTH_H
#define TESTS_PROGRAMS_TRUTH_H

#include <stdio.h>
#include <stdlib.h>

#define TRUTH_INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline, noclone))

enum { TRUTH_CALLS = 200000 };

struct truth_call {
    const char *name;
    int depth;
};

static struct truth_call truth_calls[TRUTH_CALLS];
static volatile int truth_count;
static volatile int truth_depth;

TRUTH_INLINE void truth_enter(const char *name)
{
    if (truth_count >= TRUTH_CALLS)
        abort();
    truth_calls[truth_count] = (struct truth_call){name, truth_depth};
    truth_count = truth_count + 1;
    truth_depth = truth_depth + 1;
}

TRUTH_INLINE void truth_leave(void)
{
    truth_depth = truth_depth - 1;
}

#define ENTER() truth_enter(__func__)
#define LEAVE() truth_leave()

TRUTH_INLINE int truth_print(void)
{
    const char *path = getenv("TRUTH_FILE");
    FILE *file;

    if (!path)
        return 0;
    file = fopen(path, "w");
    if (!file)
        return 1;
    for (int i = 0; i < truth_count; i++)
        fprintf(file, "%d %s\n", truth_calls[i].depth, truth_calls[i].name);
    return fclose(file) != 0;
}

#endif
