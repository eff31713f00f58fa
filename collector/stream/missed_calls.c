/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the streams are told when functions are not, or no longer, seen (a budget). */
#include <errno.h>

#include "base/array.h"
#include "collector/process/process.h"
#include "collector/stream/streams_private.h"

/* What a call says of the stack is another thing from now on. */
static void begin_epoch(struct streams *streams)
{
    for (struct traced_process *process = streams->registry.processes; process; process = process->hh.next)
        process->epoch++;
}

int streams_function_missed(struct streams *streams, uint32_t function)
{
    if (array_reserve(&streams->missed, &streams->missed_capacity, (size_t)function + 1))
        return -ENOMEM;
    while (streams->missed_count <= function)
        streams->missed[streams->missed_count++] = false;
    streams->missed[function] = true;
    begin_epoch(streams);
    return 0;
}

static bool lose_returns(struct call_stack *stack, const bool *of, size_t count)
{
    bool any = false;

    for (size_t i = 0; i < stack->depth; i++) {
        struct call_frame *frame = &stack->frames[i];

        if (frame->return_unseen || frame->function >= count || !of[frame->function])
            continue;
        frame->return_unseen = true;
        any = true;
    }
    return any;
}

int streams_returns_unseen(struct streams *streams, const bool *of, size_t count, struct error *err)
{
    struct traced_thread *thread = NULL, *next = NULL;
    int r = 0;

    begin_epoch(streams);
    HASH_ITER (hh, streams->registry.threads, thread, next)
        if (!r && lose_returns(&thread->stack, of, count) && thread->writer)
            r = thread_writer_infers(thread->writer, err);
    return r;
}

uint64_t streams_cpu_ns(const struct streams *streams)
{
    struct traced_process *process = NULL, *next = NULL;
    uint64_t sum = 0;

    HASH_ITER (hh, streams->registry.processes, process, next)
        sum += process_cpu_ns(process->pid);
    return sum;
}
