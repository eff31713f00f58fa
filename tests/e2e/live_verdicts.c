/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: live_verdicts PID [hold|frames] < WHAT-THE-PROGRAM-SAYS
 *
 * Compares what the stacks of a live process tell with what the process says itself, in lines like those of
 * tests/programs/blocked.c; other lines are passed over. Prints what is wrong, how many calls were compared,
 * and how long it took. With "hold" it prints "held" and stops when the threads that run stand still. With
 * "frames" it prints the frames too.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "collector/stacks/live_resolve.h"
#include "collector/stacks/live_stack.h"

static const char *const verdicts[] = {"unknown", "open", "returned"};

struct stack_of_thread {
    pid_t tid; /* 0: none yet */
    int result;
    struct live_stack stack;
};

static uint64_t since(uint64_t *before)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC), passed = (now - *before) / 1000;

    *before = now;
    return passed;
}

static void print_frames(const struct stack_of_thread *of)
{
    printf("thread %d: result %d, complete to %#" PRIx64 "%s\n", (int)of->tid, of->result,
           of->stack.complete_to, of->stack.whole ? ", whole" : "");
    for (size_t i = 0; i < of->stack.count; i++)
        printf("  pc %#" PRIx64 " cfa %#" PRIx64 " return address %#" PRIx64 " callee %#" PRIx64 "\n",
               of->stack.frames[i].pc, of->stack.frames[i].cfa, of->stack.frames[i].return_address,
               of->stack.frames[i].callee);
}

/* Returns 1 when the verdict is wrong. */
static int compare(const struct stack_of_thread *of, const struct live_call *call, const char *wanted,
                   const char *name)
{
    enum live_verdict verdict = live_call_verdict(&of->stack, call);

    if (!strncmp(wanted, verdicts[verdict], strcspn(wanted, "?")) ||
        (strchr(wanted, '?') && verdict == LIVE_UNKNOWN))
        return 0;
    printf("wrong: thread %d, %s at %#" PRIx64 ": %s instead of %s\n", (int)of->tid, name, call->sp,
           verdicts[verdict], wanted);
    print_frames(of);
    return 1;
}

/* Lines of one thread stand together. */
static int compare_all(struct live_stacks *stacks, int with_frames, size_t *ret_compared)
{
    struct stack_of_thread of = {0};
    char line[256], wanted[16], name[32];
    struct live_call call;
    int tid, wrong = 0;

    *ret_compared = 0;
    while (fgets(line, sizeof(line), stdin)) {
        if (sscanf(line, "call %d %15s %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %31s", &tid, wanted,
                   &call.sp, &call.start, &call.end, &call.return_address, name) != 7)
            continue;
        if (tid != of.tid) {
            live_stack_release(&of.stack);
            of = (struct stack_of_thread){.tid = tid};
            of.result = live_stack_frames(stacks, tid, &of.stack);
            if (with_frames)
                print_frames(&of);
        }
        wrong += compare(&of, &call, wanted, name);
        ++*ret_compared;
    }
    live_stack_release(&of.stack);
    return wrong;
}

int main(int argc, char **argv)
{
    uint64_t time = clock_ns(CLOCK_MONOTONIC), take_us, confirm_us;
    struct live_stacks_counts counts;
    struct live_stacks *stacks = NULL;
    struct error err;
    size_t compared;
    pid_t pid;
    int wrong;

    if (argc < 2)
        return 2;
    pid = (pid_t)atoi(argv[1]);
    if (live_stacks_read(&pid, 1, &stacks, &err))
        return fprintf(stderr, "%s\n", err.message), 3;
    take_us = since(&time);
    if (argc > 2 && !strcmp(argv[2], "hold")) {
        puts("held");
        fflush(stdout);
        pause();
    }
    time = clock_ns(CLOCK_MONOTONIC);
    if (live_stacks_confirm(stacks, &err))
        return fprintf(stderr, "%s\n", err.message), 3;
    confirm_us = since(&time);
    wrong = compare_all(stacks, argc > 2 && !strcmp(argv[2], "frames"), &compared);
    counts = live_stacks_count(stacks);
    printf("compared %zu wrong %d threads %zu stopped %zu uncertain %zu us: take %" PRIu64 " confirm %" PRIu64
           " frames %" PRIu64 " still %" PRIu64 "\n",
           compared, wrong, counts.threads, counts.stopped, counts.uncertain, take_us, confirm_us,
           since(&time), counts.still_ns / 1000);
    live_stacks_free(stacks);
    return wrong != 0 || compared == 0;
}
