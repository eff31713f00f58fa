/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A copy of the inner end of a thread's stack, as it would be without return probes. */
#ifndef TRACECTL_COLLECTOR_STACKS_LIVE_COPY_H
#define TRACECTL_COLLECTOR_STACKS_LIVE_COPY_H

#include <stddef.h>
#include <stdint.h>

#include "collector/stacks/live_maps.h"
#include "collector/stacks/live_threads.h"

/* All zero: nothing was copied. */
struct live_copy {
    uint8_t *bytes;
    uint64_t address;
    size_t size;
    uint64_t stack_low, stack_high; /* the mapping that it is of */
};

/* Copies the stack of `thread` from its stack pointer to the end of `mapping`, which the pointer lies in, but
 * no more than `limit` bytes. Fewer bytes, or none, are in the copy where the process's memory cannot be
 * read. The caller releases the copy. -ENOMEM. */
int live_copy_read(const struct live_maps *maps, const struct live_mapping *mapping,
                   const struct live_thread *thread, size_t limit, struct live_copy *ret_copy);

/* The same for any stretch of a mapping: of another stack that the thread goes back to. */
int live_copy_read_from(const struct live_maps *maps, const struct live_mapping *mapping,
                        const struct live_thread *thread, uint64_t from, size_t limit,
                        struct live_copy *ret_copy);

void live_copy_release(struct live_copy *copy);

#endif
