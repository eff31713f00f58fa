/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes whose program is written in Go: their goroutines in place of their threads. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "collector/process/process.h"
#include "collector/stacks/sampler_state.h"

void sampler_go_release(struct sampled_process *process)
{
    if (process->go)
        go_runtime_release(process->go);
    free(process->go);
    process->go = NULL;
    goroutine_copies_release(&process->goroutine_copies);
}

/* Looks once whether it is one. -ENOMEM. */
static int look_for_go(struct stack_sampler *sampler, struct sampled_process *process)
{
    const struct live_mapping *mapping;
    pid_t pid = process->caught.pid;
    struct code_image *image;
    uint64_t start, offset;
    struct error err = {0};
    int r;

    process->looked_for_go = true;
    if (process_exe_mapping(pid, &start, &offset))
        return 0;
    mapping = live_maps_find(&process->caught.maps, start);
    r = mapping ? code_images_get(&sampler->images, pid, mapping, &image) : -ENOENT;
    if (r)
        return r == -ENOMEM ? r : 0;
    process->go = calloc(1, sizeof(*process->go));
    if (!process->go)
        return -ENOMEM;
    r = go_runtime_find(image, pid, start, offset, process->go, &err);
    if (r)
        sampler_go_release(process);
    if (r && r != -ENOENT)
        snprintf(process->refusal, sizeof(process->refusal), "%.255s", err.message);
    return r == -ENOMEM ? r : 0;
}

int sampler_go_before(struct stack_sampler *sampler, struct sampled_process *process,
                      struct goroutines *ret_before)
{
    if (!process->caught.maps_read && live_maps_read(process->caught.pid, &process->caught.maps) == 0)
        process->caught.maps_read++;
    if (!process->looked_for_go && look_for_go(sampler, process))
        return -ENOMEM;
    return process->go ? goroutines_list(process->go, ret_before) : 0;
}

/* Takes away the threads that their goroutines stand for. */
static void drop_served(struct sampled_threads *threads, const bool *served)
{
    size_t kept = 0;

    for (size_t i = 0; i < threads->count; i++) {
        if (i < threads->native && served[i])
            sampled_thread_release(&threads->items[i]);
        else
            threads->items[kept++] = threads->items[i];
        if (i + 1 == threads->native)
            threads->native = kept;
    }
    threads->count = kept;
}

/* A goroutine has moved when it is elsewhere than it was the time before. */
static void find_moved(const struct sampled_process *process, const struct sampled_threads *before,
                       struct sampled_threads *now)
{
    size_t j = before->native;

    for (size_t i = now->native; i < now->count; i++) {
        struct sampled_thread *thread = &now->items[i];

        while (j < before->count && before->items[j].goid < thread->goid)
            j++;
        if (j == before->count || before->items[j].goid != thread->goid)
            continue;
        thread->moved =
            before->items[j].moved ||
            (before->items[j].known && thread->known &&
             !sampled_thread_stays(&before->items[j], thread, process->program_start, process->program_end));
    }
}

int sampler_go_behind(const struct stack_sampler *sampler, struct sampled_process *process,
                      const struct goroutines *before, const struct sampled_threads *threads_before)
{
    const struct goroutine_sampling sampling = {.runtime = process->go,
                                                .before = before,
                                                .caught = &process->caught,
                                                .unwinder = process->unwinder,
                                                .system = sampler->system};
    AUTO_FREE bool *served = calloc(process->caught.count + 1, sizeof(*served));
    int r;

    if (!served)
        return -ENOMEM;
    goroutine_copies_release(&process->goroutine_copies);
    process->system = 0;
    r = goroutines_sample(&sampling, &process->threads, served, &process->goroutine_copies, &process->system);
    if (r)
        return r;
    find_moved(process, threads_before, &process->threads);
    drop_served(&process->threads, served);
    return 0;
}
