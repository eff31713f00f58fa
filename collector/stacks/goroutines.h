/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The goroutines of a sampled process, running and waiting ones, with their stacks.
 *
 * One that waits is read from the runtime's memory: where it continues is in its struct g, its frames' sizes
 * are in .gopclntab, and both must be the same before and after its stack is copied. One that runs has been
 * caught with its thread (thread_catch.h); which one it is tell the bounds of its stack. One in C has its own
 * calls and then those of C on the thread's stack.
 */
#ifndef TRACECTL_COLLECTOR_STACKS_GOROUTINES_H
#define TRACECTL_COLLECTOR_STACKS_GOROUTINES_H

#include <stdbool.h>
#include <stddef.h>

#include "collector/stacks/goroutine_list.h"
#include "collector/stacks/live_unwind.h"
#include "collector/stacks/sampled_thread.h"
#include "collector/stacks/thread_catch.h"

/* What is to be known of a process when its goroutines are sampled. */
struct goroutine_sampling {
    const struct go_runtime *runtime;
    const struct goroutines *before; /* the list as it was before the threads were caught */
    const struct caught_process *caught;
    struct live_unwinder *unwinder;
    bool system; /* also those that the runtime begins for itself */
};

/* The copies that stacks of the sampled goroutines are in: they live as long. All zero is empty. */
struct goroutine_copies {
    struct live_copy *items;
    size_t count;
};
void goroutine_copies_release(struct goroutine_copies *copies);

/* Appends the goroutines to `threads`, by ascending goid; `served` says of each caught thread whether it is
 * shown by its goroutine, or idle in the runtime. `*ret_system`: how many of the runtime's own were left out.
 * -ENOMEM. */
int goroutines_sample(const struct goroutine_sampling *sampling, struct sampled_threads *threads,
                      bool *served, struct goroutine_copies *ret_copies, size_t *ret_system);

#endif
