/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stacks/live_copy.h"
#include "collector/process/target_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

int live_copy_read_from(const struct live_maps *maps, const struct live_mapping *mapping,
                        const struct live_thread *thread, uint64_t from, size_t limit,
                        struct live_copy *ret_copy)
{
    struct live_copy copy = {.address = from, .stack_low = mapping->start, .stack_high = mapping->end};
    size_t size = mapping->end - from < limit ? mapping->end - from : limit;

    copy.bytes = malloc(size);
    if (!copy.bytes)
        return -ENOMEM;
    copy.size = target_memory_read(thread->tid, from, copy.bytes, size);
    undo_replaced(maps, thread, &copy);
    *ret_copy = copy;
    return 0;
}

int live_copy_read(const struct live_maps *maps, const struct live_mapping *mapping,
                   const struct live_thread *thread, size_t limit, struct live_copy *ret_copy)
{
    return live_copy_read_from(maps, mapping, thread, thread->registers[LIVE_SP], limit, ret_copy);
}

void live_copy_release(struct live_copy *copy)
{
    free(copy->bytes);
    *copy = (struct live_copy){0};
}
