/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/target/live_stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "collector/target/live_maps.h"
#include "collector/target/live_stop.h"
#include "collector/target/live_threads.h"

/* Of one stack, from its innermost end. What lies further out stays unknown. */
#define COPY_LIMIT (256u << 10)

/* Threads may begin to run while others are being stopped. After so many times they are left alone. */
enum { ROUNDS = 3 };

struct process {
    pid_t pid;
    struct live_maps maps;
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
    live_threads_release(ret_threads);
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

/* Stops all that run; afterwards the list tells the registers of all that do not. */
static int settle_threads(struct live_stacks *stacks, struct error *err)
{
    int r = list_all(stacks, &stacks->threads, err);

    stacks->stopping_ns = clock_ns(CLOCK_MONOTONIC);
    for (int round = 0; !r && round < ROUNDS; round++) {
        ssize_t stopped = stop_runners(stacks);

        if (stopped < 0)
            return error_no_memory(err);
        if (!stopped)
            break;
        r = list_all(stacks, &stacks->threads, err);
    }
    return r;
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

/* Puts the true return addresses where return probes have replaced them: a slot that holds an address of the
 * kernel's trampoline. (One that does not belongs to a frame that is gone.) */
static void undo_replaced(const struct live_maps *maps, const struct live_thread *thread,
                          struct live_copy *copy)
{
    for (size_t i = 0; i < thread->replaced_count; i++) {
        uint64_t offset = thread->replaced[i].slot - copy->address, value;
        const struct live_mapping *mapping;

        if (copy->size < sizeof(value) || offset > copy->size - sizeof(value))
            continue;
        memcpy(&value, copy->bytes + offset, sizeof(value));
        mapping = live_maps_find(maps, value);
        if (mapping && mapping->kind == LIVE_UPROBES)
            memcpy(copy->bytes + offset, &thread->replaced[i].address, sizeof(value));
    }
}

/* Leaves `ret_copy` alone when there is nothing to copy. -ENOMEM. */
static int copy_stack(const struct process *process, const struct live_thread *thread,
                      struct live_copy *ret_copy)
{
    const struct live_mapping *mapping = own_stack(&process->maps, thread);
    uint64_t sp = thread->registers[LIVE_SP];
    struct live_copy copy = {.address = sp};
    size_t size;

    if (!mapping || !thread->is_64_bit)
        return 0;
    size = mapping->end - sp < COPY_LIMIT ? mapping->end - sp : COPY_LIMIT;
    copy.bytes = malloc(size);
    if (!copy.bytes)
        return -ENOMEM;
    copy.size = live_memory_read(process->pid, sp, copy.bytes, size);
    copy.stack_low = mapping->start;
    copy.stack_high = mapping->end;
    undo_replaced(&process->maps, thread, &copy);
    *ret_copy = copy;
    return 0;
}

static void drop_copy(struct live_copy *copy)
{
    free(copy->bytes);
    *copy = (struct live_copy){0};
}

/* Maps are read when the threads stand still, and not before: threads and libraries may be young. */
static int copy_stacks(struct live_stacks *stacks)
{
    stacks->copies = calloc(stacks->threads.count + 1, sizeof(*stacks->copies));
    if (!stacks->copies)
        return -ENOMEM;
    for (size_t i = 0; i < stacks->process_count; i++)
        if (live_maps_read(stacks->processes[i].pid, &stacks->processes[i].maps) == -ENOMEM)
            return -ENOMEM;
    for (size_t i = 0; i < stacks->threads.count; i++) {
        const struct live_thread *thread = &stacks->threads.items[i];
        const struct process *process = process_of(stacks, thread->pid);

        if (thread->runnable || !process)
            continue;
        if (copy_stack(process, thread, &stacks->copies[i]))
            return -ENOMEM;
    }
    return 0;
}

int live_stacks_take(const pid_t *pids, size_t count, struct live_stacks **ret_stacks, struct error *err)
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
        r = settle_threads(stacks, err);
    if (!r && copy_stacks(stacks))
        r = error_no_memory(err);
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

        if (!after || after->on_cpu || after->switches != before->switches)
            drop_copy(&stacks->copies[i]);
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
    for (size_t i = 0; stacks->copies && i < stacks->threads.count; i++)
        drop_copy(&stacks->copies[i]);
    free(stacks->copies);
    live_threads_release(&stacks->threads);
    for (size_t i = 0; i < stacks->process_count; i++) {
        live_unwinder_free(stacks->processes[i].unwinder);
        live_maps_release(&stacks->processes[i].maps);
    }
    free(stacks->processes);
    free(stacks);
}
