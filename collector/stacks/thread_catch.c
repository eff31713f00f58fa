/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stacks/thread_catch.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "collector/stacks/live_stop.h"

#define COPY_LIMIT (1u << 20)          /* of one stack, from its innermost end */
#define COPY_LIMIT_MANY (64u << 10)    /* where there are many threads */
#define LOWER_STACK_LIMIT (256u << 10) /* below a signal handler's stack, from the outermost end */

enum { MANY_THREADS = 1000, SINGLE_ROUNDS = 3, MAPS_READ_MAX = 64 };

static void release_copies(struct caught_thread *thread)
{
    for (size_t i = 0; i < thread->copy_count; i++)
        live_copy_release(&thread->copies[i]);
    thread->copy_count = 0;
}

static void release_threads(struct caught_process *process)
{
    for (size_t i = 0; i < process->count; i++)
        release_copies(&process->threads[i]);
    free(process->threads);
    process->threads = NULL;
    process->count = 0;
}

void caught_process_release(struct caught_process *process)
{
    release_threads(process);
    live_maps_release(&process->maps);
    *process = (struct caught_process){0};
}

/* ------------------------------------------------------------------------------------------------- stacks
 */

static int read_maps(struct caught_process *process)
{
    struct live_maps maps;
    int r = live_maps_read(process->alive, &maps);

    if (r)
        return r == -ESRCH ? 0 : r;
    live_maps_release(&process->maps);
    process->maps = maps;
    process->maps_read++;
    return 0;
}

/* The part of the stack that a thread was born with that lies nearest to its begin: what a signal handler on
 * a stack of its own goes back to. How far down the thread had come there is in the handler's frame; what
 * lies deeper than the limit stays unknown. */
static int copy_lower_stack(const struct caught_process *process, struct caught_thread *caught)
{
    const struct live_thread *thread = &caught->seen;
    uint64_t upper = thread->tid == thread->pid ? thread->main_stack : thread->thread_block, from;
    const struct live_mapping *mapping = live_maps_find(&process->maps, upper);
    int r;

    if (thread->registers[LIVE_SP] - thread->signal_stack >= thread->signal_stack_size || !mapping)
        return 0;
    from =
        mapping->end - mapping->start > LOWER_STACK_LIMIT ? mapping->end - LOWER_STACK_LIMIT : mapping->start;
    r = live_copy_read_from(&process->maps, mapping, thread, from, LOWER_STACK_LIMIT,
                            &caught->copies[caught->copy_count]);
    caught->copy_count += r == 0;
    return r;
}

/* A stack that is in no mapping is of a thread that is younger than the maps, or has grown; code, of a young
 * library. */
static bool is_mapped(const struct caught_process *process, const struct live_thread *thread)
{
    return live_maps_find(&process->maps, thread->registers[LIVE_SP]) &&
           live_maps_find(&process->maps, thread->registers[LIVE_PC]);
}

/* Copies the stacks of a thread with these registers. -ENOMEM. */
static int copy_stacks(struct caught_process *process, struct caught_thread *caught)
{
    size_t limit = process->count < MANY_THREADS ? COPY_LIMIT : COPY_LIMIT_MANY;
    const struct live_mapping *mapping;
    int r;

    release_copies(caught);
    if (!is_mapped(process, &caught->seen) && process->maps_read < MAPS_READ_MAX) {
        r = read_maps(process);
        if (r)
            return r;
    }
    mapping = live_maps_find(&process->maps, caught->seen.registers[LIVE_SP]);
    if (!mapping || !caught->seen.is_64_bit)
        return 0;
    r = live_copy_read(&process->maps, mapping, &caught->seen, limit, &caught->copies[0]);
    if (r)
        return r;
    caught->copy_count = 1;
    return copy_lower_stack(process, caught);
}

/* ------------------------------------------------------------------------------------------------ threads
 */

/* Whether a thread has not run since the kernel was asked before. */
static bool stood_still(const struct live_thread *before, const struct live_thread *after)
{
    return !after->on_cpu && after->switches == before->switches;
}

static int list_threads(struct live_reader *reader, pid_t pid, struct live_threads *ret_threads,
                        struct error *err)
{
    struct live_threads threads = {0};
    int r = live_reader_list(reader, pid, &threads, err);

    if (r) {
        live_threads_release(&threads);
        return r;
    }
    live_threads_sort(&threads);
    *ret_threads = threads;
    return 0;
}

static struct caught_thread *find_caught(const struct caught_process *process, pid_t tid)
{
    size_t low = 0, high = process->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (process->threads[middle].seen.tid < tid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < process->count && process->threads[low].seen.tid == tid ? &process->threads[low] : NULL;
}

/* Makes the process's threads those that there are now. What was caught of one that has not run is kept. */
static int take_over(struct caught_process *process, const struct live_threads *now)
{
    struct caught_thread *threads = calloc(now->count + 1, sizeof(*threads));

    if (!threads)
        return -ENOMEM;
    for (size_t i = 0; i < now->count; i++) {
        struct caught_thread *before = find_caught(process, now->items[i].tid);

        threads[i] = (struct caught_thread){.seen = now->items[i], .ran = true};
        if (!before || !before->caught || !stood_still(&before->seen, &now->items[i]))
            continue;
        threads[i] = *before;
        threads[i].ran = false;
        before->copy_count = 0;
    }
    release_threads(process);
    process->threads = threads;
    process->count = now->count;
    return 0;
}

/* Copies the stacks of all that are off the processor, and asks once more. */
static int catch_together(struct live_reader *reader, struct caught_process *process, struct error *err)
{
    CLEANUP(live_threads_release) struct live_threads after = {0};
    int r = 0;

    for (size_t i = 0; i < process->count && !r; i++)
        if (!process->threads[i].caught && !process->threads[i].seen.on_cpu)
            r = copy_stacks(process, &process->threads[i]);
    if (r)
        return error_no_memory(err), -ENOMEM;
    r = list_threads(reader, process->pid, &after, err);
    for (size_t i = 0; !r && i < process->count; i++) {
        struct caught_thread *thread = &process->threads[i];
        const struct live_thread *now = live_threads_find(&after, thread->seen.tid);

        if (!thread->caught && !thread->seen.on_cpu)
            thread->caught = now && stood_still(&thread->seen, now);
    }
    return r;
}

/* The thread as the kernel sees it now, or -ESRCH. */
static int look_at(struct live_reader *reader, pid_t tid, struct live_thread *ret_thread, struct error *err)
{
    CLEANUP(live_threads_release) struct live_threads threads = {0};
    int r = live_reader_list_thread(reader, tid, &threads, err);

    if (r)
        return r;
    if (!threads.count)
        return -ESRCH;
    *ret_thread = threads.items[0];
    return 0;
}

/* Once more for one thread. -ESRCH: it is gone. */
static int catch_one(struct live_reader *reader, struct caught_process *process, struct caught_thread *thread,
                     struct error *err)
{
    struct live_thread after;
    int r = look_at(reader, thread->seen.tid, &thread->seen, err);

    if (r || thread->seen.on_cpu)
        return r;
    r = copy_stacks(process, thread);
    if (r)
        return error_no_memory(err), -ENOMEM;
    r = look_at(reader, thread->seen.tid, &after, err);
    if (!r)
        thread->caught = stood_still(&thread->seen, &after);
    return r;
}

/* Before all others on a loaded machine, so that no thread stands still while this process waits for its
 * turn: what it does meanwhile takes microseconds. Without the permission things take as long as they take.
 */
static void hurry(bool on)
{
    const struct sched_param first = {.sched_priority = on ? 1 : 0};

    sched_setscheduler(0, on ? SCHED_RR : SCHED_OTHER, &first);
}

/* Stops a thread that will not be caught otherwise, for as long as it takes to copy its stack. */
static int catch_stopped(struct live_reader *reader, struct caught_process *process,
                         struct caught_thread *thread, struct catch_counts *counts, struct error *err)
{
    struct live_stop *stop;
    uint64_t since, lasted;
    int r;

    hurry(true); /* and the thread that stops others, too, which inherits it */
    r = live_stop_start(&stop, err);
    if (!r && live_stop_threads(stop, &thread->seen.tid, 1) == 1) {
        since = clock_ns(CLOCK_MONOTONIC);
        r = catch_one(reader, process, thread, err);
        thread->seen.state = 0; /* it ran */
        live_stop_end(stop);
        lasted = clock_ns(CLOCK_MONOTONIC) - since;
        counts->stopped++;
        if (lasted > counts->longest_stop_ns)
            counts->longest_stop_ns = lasted;
    } else if (!r) {
        live_stop_end(stop);
    }
    hurry(false);
    return r;
}

/* One that is gone stays without a stack. */
static int catch_alone(struct live_reader *reader, struct caught_process *process,
                       struct caught_thread *thread, struct catch_counts *counts, struct error *err)
{
    int r = 0;

    for (int round = 0; round < SINGLE_ROUNDS && !thread->caught && !r; round++)
        r = catch_one(reader, process, thread, err);
    if (!thread->caught && !r)
        r = catch_stopped(reader, process, thread, counts, err);
    return r == -ESRCH ? 0 : r;
}

int catch_threads(struct live_reader *reader, struct caught_process *process, struct catch_counts *counts,
                  struct error *err)
{
    CLEANUP(live_threads_release) struct live_threads now = {0};
    int r;

    r = list_threads(reader, process->pid, &now, err);
    if (r)
        return r;
    process->alive = !now.count || live_threads_find(&now, process->pid) ? process->pid : now.items[0].tid;
    if ((!process->maps_read && read_maps(process)) || take_over(process, &now))
        return error_no_memory(err), -ENOMEM;
    r = catch_together(reader, process, err);
    for (size_t i = 0; i < process->count && !r; i++)
        if (!process->threads[i].caught)
            r = catch_alone(reader, process, &process->threads[i], counts, err);
    if (r)
        release_threads(process);
    return r;
}
