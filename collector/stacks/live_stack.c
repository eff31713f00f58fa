/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stacks/live_stack.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "collector/stacks/live_copy.h"
#include "collector/stacks/live_maps.h"
#include "collector/stacks/live_stop.h"
#include "collector/stacks/live_threads.h"

/* Of one stack, from its innermost end. What lies further out stays unknown. */
#define COPY_LIMIT (256u << 10)

/* Threads may begin to run while others are being stopped. After so many times they are not stopped. */
enum { ROUNDS = 3 };

struct process {
    pid_t pid;
    struct live_maps maps;
    bool maps_are_young;            /* they have been read again: a stack was in none of them */
    struct live_unwinder *unwinder; /* NULL until the first thread is unwound */
};

struct live_stacks {
    struct process *processes;
    size_t process_count;
    struct live_reader *reader;
    struct live_stop *stop; /* NULL once all are let go */
    struct live_threads threads;
    struct live_copy *copies; /* one for each thread; without bytes: nothing is known */
    size_t stopped;
    uint64_t stopping_ns; /* since when threads were stopped */
    uint64_t still_ns;    /* how long they stood still */
};

static int list_all(const struct live_stacks *stacks, struct live_threads *ret_threads, struct error *err)
{
    struct live_threads threads = {0};
    int r = 0;

    for (size_t i = 0; i < stacks->process_count && !r; i++)
        r = live_reader_list(stacks->reader, stacks->processes[i].pid, &threads, err);
    if (r) {
        live_threads_release(&threads);
        return r;
    }
    live_threads_sort(&threads);
    *ret_threads = threads;
    return 0;
}

/* Stops the threads that run. Returns how many more stand still now. */
static ssize_t stop_runners(struct live_stacks *stacks)
{
    AUTO_FREE pid_t *tids = malloc((stacks->threads.count + 1) * sizeof(*tids));
    size_t count = 0;
    ssize_t stopped;

    if (!tids)
        return -ENOMEM;
    for (size_t i = 0; i < stacks->threads.count; i++)
        if (stacks->threads.items[i].runnable)
            tids[count++] = stacks->threads.items[i].tid;
    stopped = count ? live_stop_threads(stacks->stop, tids, count) : 0;
    if (stopped > 0)
        stacks->stopped += (size_t)stopped;
    return stopped;
}

static struct process *process_of(struct live_stacks *stacks, pid_t pid)
{
    for (size_t i = 0; i < stacks->process_count; i++)
        if (stacks->processes[i].pid == pid)
            return &stacks->processes[i];
    return NULL;
}

/* The mapping of the stack that the thread was born with, if its stack pointer lies in it. The main thread's
 * holds mm->start_stack; any other thread has its control block (fs) at the upper end of its stack. */
static const struct live_mapping *own_stack(const struct live_maps *maps, const struct live_thread *thread)
{
    uint64_t sp = thread->registers[LIVE_SP];
    uint64_t upper_end = thread->tid == thread->pid ? thread->main_stack : thread->thread_block;
    const struct live_mapping *mapping = live_maps_find(maps, sp);

    if (!mapping || upper_end <= sp || upper_end >= mapping->end ||
        sp - thread->signal_stack < thread->signal_stack_size)
        return NULL;
    return mapping;
}

/* A stack that is in no mapping belongs to a thread that is younger than the maps, or has grown; code, to a
 * young library. */
static const struct live_mapping *find_own_stack(struct process *process, const struct live_thread *thread)
{
    const struct live_maps *maps = &process->maps;
    struct live_maps again;

    if (!process->maps_are_young &&
        (!live_maps_find(maps, thread->registers[LIVE_SP]) ||
         !live_maps_find(maps, thread->registers[LIVE_PC])) &&
        !live_maps_read(process->pid, &again)) {
        live_maps_release(&process->maps);
        process->maps = again;
        process->maps_are_young = true;
    }
    return own_stack(&process->maps, thread);
}

/* Leaves `ret_copy` alone when there is nothing to copy. -ENOMEM. */
static int copy_stack(struct process *process, const struct live_thread *thread, struct live_copy *ret_copy)
{
    const struct live_mapping *mapping = find_own_stack(process, thread);

    if (!mapping || !thread->is_64_bit)
        return 0;
    return live_copy_read(&process->maps, mapping, thread, COPY_LIMIT, ret_copy);
}

static void drop_copies(struct live_stacks *stacks)
{
    for (size_t i = 0; stacks->copies && i < stacks->threads.count; i++)
        live_copy_release(&stacks->copies[i]);
    free(stacks->copies);
    stacks->copies = NULL;
}

/* Whether a thread has run since the kernel was asked before. */
static bool stood_still(const struct live_thread *before, const struct live_thread *after)
{
    return !after->on_cpu && after->switches == before->switches;
}

/* The copy for a thread as it is now: the one that was made before if that is still good, or a new one. */
static int refresh_copy(struct live_stacks *stacks, const struct live_thread *now, struct live_copy *ret_copy)
{
    const struct live_thread *before = live_threads_find(&stacks->threads, now->tid);
    struct process *process = process_of(stacks, now->pid);

    if (before && stood_still(before, now)) {
        struct live_copy *copy = &stacks->copies[before - stacks->threads.items];

        *ret_copy = *copy;
        *copy = (struct live_copy){0};
        if (ret_copy->bytes)
            return 0;
    }
    return now->runnable || !process ? 0 : copy_stack(process, now, ret_copy);
}

/* Asks the kernel for all threads, and copies the stacks of those that do not run and have run since the last
 * time. */
static int look(struct live_stacks *stacks, struct error *err)
{
    struct live_threads now = {0};
    struct live_copy *copies;
    int r = list_all(stacks, &now, err);

    if (r)
        return r;
    copies = calloc(now.count + 1, sizeof(*copies));
    for (size_t i = 0; copies && i < now.count && !r; i++)
        r = refresh_copy(stacks, &now.items[i], &copies[i]);
    if (!copies) {
        live_threads_release(&now);
        return error_no_memory(err);
    }
    drop_copies(stacks);
    live_threads_release(&stacks->threads);
    stacks->threads = now;
    stacks->copies = copies;
    return r ? error_no_memory(err) : 0;
}

/* Copies the stacks of all that sleep, which is most of the work; then stops those that run, and copies
 * theirs. */
static int take(struct live_stacks *stacks, struct error *err)
{
    int r;

    for (size_t i = 0; i < stacks->process_count; i++)
        if (live_maps_read(stacks->processes[i].pid, &stacks->processes[i].maps) == -ENOMEM)
            return error_no_memory(err);
    r = look(stacks, err);
    stacks->stopping_ns = clock_ns(CLOCK_MONOTONIC);
    for (int round = 0; !r && round < ROUNDS; round++) {
        ssize_t stopped = stop_runners(stacks);

        if (stopped < 0)
            return error_no_memory(err);
        if (!stopped)
            break;
        r = look(stacks, err);
    }
    return r;
}

int live_stacks_read(const pid_t *pids, size_t count, struct live_stacks **ret_stacks, struct error *err)
{
    struct live_stacks *stacks = calloc(1, sizeof(*stacks));
    int r;

    if (!stacks)
        return error_no_memory(err);
    stacks->processes = calloc(count + 1, sizeof(*stacks->processes));
    if (!stacks->processes) {
        live_stacks_free(stacks);
        return error_no_memory(err);
    }
    for (size_t i = 0; i < count; i++)
        if (!process_of(stacks, pids[i]))
            stacks->processes[stacks->process_count++].pid = pids[i];
    r = live_reader_open(&stacks->reader, err);
    if (!r)
        r = live_stop_start(&stacks->stop, err);
    if (!r)
        r = take(stacks, err);
    if (r) {
        live_stacks_free(stacks);
        return r;
    }
    *ret_stacks = stacks;
    return 0;
}

int live_stacks_confirm(struct live_stacks *stacks, struct error *err)
{
    struct live_threads now = {0};
    int r = list_all(stacks, &now, err);

    live_stop_end(stacks->stop);
    stacks->stop = NULL;
    stacks->still_ns = stacks->stopped ? clock_ns(CLOCK_MONOTONIC) - stacks->stopping_ns : 0;
    for (size_t i = 0; i < stacks->threads.count; i++) {
        const struct live_thread *before = &stacks->threads.items[i];
        const struct live_thread *after = live_threads_find(&now, before->tid);

        if (!after || !stood_still(before, after))
            live_copy_release(&stacks->copies[i]);
    }
    live_threads_release(&now);
    return r;
}

int live_stack_frames(struct live_stacks *stacks, pid_t tid, struct live_stack *ret_stack)
{
    const struct live_thread *thread = live_threads_find(&stacks->threads, tid);
    struct process *process = thread ? process_of(stacks, thread->pid) : NULL;
    const struct live_copy *copy;

    if (!process)
        return -ESRCH;
    copy = &stacks->copies[thread - stacks->threads.items];
    if (stacks->stop || !copy->bytes)
        return -EAGAIN;
    if (!process->unwinder) {
        int r = live_unwinder_new(process->pid, &process->maps, &process->unwinder);

        if (r)
            return r;
    }
    return live_unwind(process->unwinder, thread, copy, ret_stack);
}

struct live_stacks_counts live_stacks_count(const struct live_stacks *stacks)
{
    struct live_stacks_counts counts = {
        .threads = stacks->threads.count, .stopped = stacks->stopped, .still_ns = stacks->still_ns};

    for (size_t i = 0; i < stacks->threads.count; i++)
        counts.uncertain += !stacks->copies[i].bytes;
    return counts;
}

void live_stacks_free(struct live_stacks *stacks)
{
    if (!stacks)
        return;
    live_stop_end(stacks->stop);
    live_reader_close(stacks->reader);
    drop_copies(stacks);
    live_threads_release(&stacks->threads);
    for (size_t i = 0; i < stacks->process_count; i++) {
        live_unwinder_free(stacks->processes[i].unwinder);
        live_maps_release(&stacks->processes[i].maps);
    }
    free(stacks->processes);
    free(stacks);
}
