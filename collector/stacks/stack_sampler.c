/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stacks/stack_sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/foreign_file.h"
#include "collector/process/process.h"
#include "collector/stacks/sampler_state.h"
#include "collector/stacks/thread_state.h"

/* --------------------------------------------------------------------------------------------------- life
 */

static void release_process(struct sampled_process *process)
{
    sampled_threads_release(&process->threads);
    sampler_go_release(process);
    live_unwinder_free(process->unwinder);
    caught_process_release(&process->caught);
}

int stack_sampler_new(const struct stack_sampler_options *options, struct stack_sampler **ret_sampler,
                      struct error *err)
{
    struct stack_sampler *sampler = calloc(1, sizeof(*sampler));
    int r = 0;

    if (!sampler)
        return error_no_memory(err);
    sampler->system = options->system;
    sampler->processes = calloc(options->count + 1, sizeof(*sampler->processes));
    if (!sampler->processes)
        r = (error_no_memory(err), -ENOMEM);
    for (size_t i = 0; i < options->count && !r; i++) {
        sampler->processes[i].caught.pid = options->pids[i];
        sampler->processes[i].rank = process_rank(options->pids[i]);
        sampler->process_count++;
    }
    if (!r)
        r = live_reader_open(&sampler->reader, err);
    if (r) {
        stack_sampler_free(sampler);
        return r;
    }
    *ret_sampler = sampler;
    return 0;
}

void stack_sampler_free(struct stack_sampler *sampler)
{
    if (!sampler)
        return;
    for (size_t i = 0; i < sampler->process_count; i++)
        release_process(&sampler->processes[i]);
    free(sampler->processes);
    for (size_t i = 0; i < sampler->filled_count; i++)
        free(sampler->filled[i].places);
    free(sampler->filled);
    code_images_release(&sampler->images);
    live_reader_close(sampler->reader);
    free(sampler);
}

/* ------------------------------------------------------------------------------------------------- taking
 */

/* Finds where the process's own program is: the mappings of its executable. */
static void find_program(struct sampled_process *process)
{
    const struct live_maps *maps = &process->caught.maps;
    struct stat exe;
    char link[64];

    process_exe_link(process->caught.alive, link, sizeof(link));
    process->program_start = process->program_end = 0;
    if (foreign_file_stat(link, &exe))
        return;
    for (size_t i = 0; i < maps->count; i++) {
        if (maps->items[i].kind != LIVE_FILE || maps->items[i].inode != exe.st_ino)
            continue;
        if (!process->program_end)
            process->program_start = maps->items[i].start;
        process->program_end = maps->items[i].end;
    }
}

/* An unwinder for the maps as they are by now. -ENOMEM. */
static int renew_unwinder(struct sampled_process *process)
{
    if (process->unwinder && process->unwinder_maps == process->caught.maps_read)
        return 0;
    live_unwinder_free(process->unwinder);
    process->unwinder = NULL;
    find_program(process);
    process->unwinder_maps = process->caught.maps_read;
    return live_unwinder_new(process->caught.alive, &process->caught.maps, &process->unwinder);
}

struct unwinding {
    struct sampled_thread *thread;
    bool no_memory;
};

static bool add_activation(void *context, const struct live_activation *activation)
{
    struct unwinding *unwinding = context;

    unwinding->no_memory = !sampled_thread_add(unwinding->thread, activation);
    return !unwinding->no_memory;
}

/* A thread as it was caught, with its stack. -ENOMEM. */
static int unwind(struct sampled_process *process, const struct caught_thread *caught,
                  struct sampled_thread *thread)
{
    struct unwinding unwinding = {.thread = thread};

    thread->known = caught->caught && caught->copy_count;
    if (thread->known)
        thread->whole = live_unwind_activations(process->unwinder, &caught->seen, caught->copies,
                                                caught->copy_count, add_activation, &unwinding);
    return unwinding.no_memory ? -ENOMEM : 0;
}

static struct sampled_thread *find_thread(const struct sampled_threads *threads, pid_t tid)
{
    size_t low = 0, high = threads->native;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (threads->items[middle].tid < tid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < threads->native && threads->items[low].tid == tid ? &threads->items[low] : NULL;
}

/* What was known of a thread that has not run since is still so. */
static void keep(struct sampled_thread *thread, struct sampled_thread *before)
{
    thread->activations = take_pointer(before->activations);
    thread->count = before->count;
    thread->capacity = before->capacity;
    thread->whole = before->whole;
    thread->known = before->known;
    thread->moved = before->moved;
}

static int sample_thread(struct sampled_process *process, const struct caught_thread *caught,
                         struct sampled_threads *before)
{
    struct sampled_thread *same = find_thread(before, caught->seen.tid), *thread;
    int r;

    if (array_reserve(&process->threads.items, &process->threads.capacity, process->threads.count + 1))
        return -ENOMEM;
    thread = &process->threads.items[process->threads.count++];
    *thread = (struct sampled_thread){.pid = caught->seen.pid,
                                      .tid = caught->seen.tid,
                                      .switches = caught->seen.switches,
                                      .copies = caught->copies,
                                      .copy_count = caught->copy_count};
    thread_state_words(&caught->seen, thread->state, sizeof(thread->state));
    if (same && !caught->ran && same->known) {
        keep(thread, same);
        return 0;
    }
    r = unwind(process, caught, thread);
    thread->moved =
        same &&
        (same->moved || (same->known && thread->known &&
                         !sampled_thread_stays(same, thread, process->program_start, process->program_end)));
    return r;
}

/* The threads, and then the goroutines, of a process whose threads are caught. -ENOMEM. */
static int sample_caught(const struct stack_sampler *sampler, struct sampled_process *process,
                         const struct goroutines *goroutines, struct sampled_threads *before)
{
    if (renew_unwinder(process))
        return -ENOMEM;
    for (size_t i = 0; i < process->caught.count; i++)
        if (sample_thread(process, &process->caught.threads[i], before))
            return -ENOMEM;
    process->threads.native = process->threads.count;
    return process->go && process->caught.count ? sampler_go_behind(sampler, process, goroutines, before) : 0;
}

static int sample_process(struct stack_sampler *sampler, struct sampled_process *process, struct error *err)
{
    CLEANUP(goroutines_release) struct goroutines goroutines = {0};
    struct sampled_threads before = process->threads;
    int r;

    if (sampler_go_before(sampler, process, &goroutines))
        return error_no_memory(err), -ENOMEM;
    r = catch_threads(sampler->reader, &process->caught, &sampler->caught, err);
    process->threads = (struct sampled_threads){0};
    if (!r && sample_caught(sampler, process, &goroutines, &before))
        r = (error_no_memory(err), -ENOMEM);
    sampled_threads_release(&before);
    return r;
}

int stack_sampler_sample(struct stack_sampler *sampler, struct error *err)
{
    size_t threads = 0;

    for (size_t i = 0; i < sampler->process_count; i++) {
        int r = sample_process(sampler, &sampler->processes[i], err);

        if (r)
            return r;
        threads += sampler->processes[i].threads.count;
    }
    return threads ? 0 : error_set(err, -ESRCH, NULL, "cannot sample the processes");
}

/* -------------------------------------------------------------------------------------------- the outcome
 */

struct stack_sampler_counts stack_sampler_count(const struct stack_sampler *sampler)
{
    struct stack_sampler_counts counts = {.stopped = sampler->caught.stopped,
                                          .longest_stop_ns = sampler->caught.longest_stop_ns};

    for (size_t i = 0; i < sampler->process_count; i++) {
        const struct sampled_threads *threads = &sampler->processes[i].threads;

        counts.threads += threads->count;
        counts.system += sampler->processes[i].system;
        for (size_t j = 0; j < threads->count; j++)
            counts.uncertain += !threads->items[j].known;
    }
    return counts;
}

void stack_sampler_refusals(const struct stack_sampler *sampler,
                            void (*say)(void *context, pid_t pid, const char *reason), void *context)
{
    for (size_t i = 0; i < sampler->process_count; i++)
        if (sampler->processes[i].refusal[0])
            say(context, sampler->processes[i].caught.pid, sampler->processes[i].refusal);
}
