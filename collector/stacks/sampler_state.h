/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to collector/stacks/: what a sampler knows. */
#ifndef TRACECTL_COLLECTOR_STACKS_SAMPLER_STATE_H
#define TRACECTL_COLLECTOR_STACKS_SAMPLER_STATE_H

#include "collector/stacks/code_images.h"
#include "collector/stacks/goroutine_list.h"
#include "collector/stacks/goroutines.h"
#include "collector/stacks/live_unwind.h"
#include "collector/stacks/sampled_thread.h"
#include "collector/stacks/stack_sampler.h"
#include "collector/stacks/thread_catch.h"

struct sampled_process {
    struct caught_process caught;
    int rank; /* -1: none */
    struct live_unwinder *unwinder;
    unsigned unwinder_maps;              /* of which reading of the maps it is */
    uint64_t program_start, program_end; /* code of its own program; 0, 0: not known */
    struct sampled_threads threads;      /* of the last time */
    bool looked_for_go;
    struct go_runtime *go; /* NULL: its threads are shown */
    struct goroutine_copies goroutine_copies;
    size_t system;     /* goroutines that are left out */
    char refusal[256]; /* why its goroutines are not known; "": nothing to say */
};

/* The part of sampling a process that knows Go (sampler_go.c): before its threads are caught, and behind.
 * -ENOMEM. */
int sampler_go_before(struct stack_sampler *sampler, struct sampled_process *process,
                      struct goroutines *ret_before);
int sampler_go_behind(const struct stack_sampler *sampler, struct sampled_process *process,
                      const struct goroutines *before, const struct sampled_threads *threads_before);
void sampler_go_release(struct sampled_process *process);

/* What a place of the set that was filled is of. */
struct filled_place {
    uint32_t activation;
    uint64_t bias; /* what its image's addresses are moved by */
};

/* A thread of that set. */
struct filled_thread {
    const struct sampled_process *process;
    const struct sampled_thread *thread;
    struct filled_place *places; /* the outermost first */
    size_t count;
};

struct stack_sampler {
    bool system;
    struct sampled_process *processes;
    size_t process_count;
    struct live_reader *reader;
    struct code_images images;
    struct catch_counts caught;
    struct filled_thread *filled; /* by their number in the set */
    size_t filled_count, filled_capacity;
};

#endif
