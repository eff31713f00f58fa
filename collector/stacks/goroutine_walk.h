/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to collector/stacks/: stacks of Go code, by the runtime's own table. */
#ifndef TRACECTL_COLLECTOR_STACKS_GOROUTINE_WALK_H
#define TRACECTL_COLLECTOR_STACKS_GOROUTINE_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "collector/stacks/goroutine_list.h"
#include "collector/stacks/live_unwind.h"
#include "collector/stacks/sampled_thread.h"

/* Where a walk begins. */
struct go_point {
    uint64_t pc, sp;
    bool interrupted; /* `pc` is not behind a call */
};

/* Appends the activations from `from` on, outwards, and says in `thread->whole` whether they came to the
 * goroutine's first function. False: no memory. */
bool go_walk_stack(const struct go_runtime *runtime, struct go_point from, const struct live_copy *copy,
                   struct sampled_thread *thread);

/* Appends the activations of a caught thread up to the first one in Go code, which is left out: `*ret_point`.
 * Those are C's, the vDSO's, or none. False: there is no Go code on its stack, and nothing was appended; or
 * no memory, and then `thread->known` is unset. */
bool go_walk_to_go(const struct go_runtime *runtime, struct live_unwinder *unwinder,
                   const struct caught_thread *caught, struct sampled_thread *thread,
                   struct go_point *ret_point);

#endif
