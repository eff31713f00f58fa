/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which calls are open when a thread or the recording ends. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "collector/stacks/live_resolve.h"
#include "collector/stacks/live_stack.h"
#include "collector/stream/goroutine_streams.h"
#include "collector/stream/process_code.h"
#include "collector/stream/streams_private.h"
#include "collector/stream/sync_streams.h"

static int resolve_losses(struct streams *streams, struct traced_thread *thread, uint64_t ns)
{
    struct life_cycle_source *source = streams->options.source;
    struct wire_losses lost = source->of->consume_losses(source, thread->tid);

    int r = lost.go ? goroutine_streams_lost(streams, thread->process, thread->tid, ns, lost.go) : 0;

    if (!r && lost.sync)
        r = sync_stream_lost(streams, thread, ns, lost.sync);
    return !r && lost.calls + lost.returns ? streams_write_loss(streams, thread, ns, lost.calls, lost.returns)
                                           : r;
}

static bool is_uncertain(const struct traced_thread *thread)
{
    return thread->writer && call_stack_is_uncertain(&thread->stack, streams_entry_function(thread->process));
}

int streams_resolve_thread(struct streams *streams, struct traced_thread *thread, uint64_t ns)
{
    int r = resolve_losses(streams, thread, ns);

    return !r && is_uncertain(thread) ? thread_writer_infers(thread->writer, &streams->error) : r;
}

int streams_uncertain_processes(const struct streams *streams, pid_t **ret_pids, size_t *ret_count)
{
    pid_t *pids = calloc(HASH_COUNT(streams->registry.processes) + 1, sizeof(*pids));
    size_t count = 0;

    if (!pids)
        return -ENOMEM;
    for (struct traced_process *process = streams->registry.processes; process; process = process->hh.next)
        process->uncertain = false;
    for (struct traced_thread *thread = streams->registry.threads; thread; thread = thread->hh.next) {
        if (!is_uncertain(thread) || thread->process->uncertain)
            continue;
        thread->process->uncertain = true;
        pids[count++] = thread->process->pid;
    }
    *ret_pids = pids;
    *ret_count = count;
    return 0;
}

/* An open call as the unwinder's judge wants it. */
static struct live_call live_call_of(const struct streams *streams, const struct traced_process *process,
                                     const struct call_frame *frame)
{
    struct live_call call = {.sp = frame->sp, .return_address = frame->return_address};
    struct function_place place;
    uint64_t load_bias;

    if (image_table_place(streams->images, frame->function, &place) &&
        process_code_bias(process, place.image, &load_bias)) {
        call.start = place.address + load_bias;
        call.end = call.start + place.size;
    }
    return call;
}

static int judge_calls(const struct streams *streams, const struct traced_thread *thread,
                       const struct live_stack *stack, struct live_resolution *ret_resolution)
{
    AUTO_FREE struct live_call *calls = calloc(thread->stack.depth + 1, sizeof(*calls));

    if (!calls)
        return -ENOMEM;
    for (size_t i = 0; i < thread->stack.depth; i++) {
        if (thread->stack.frames[i].on_signal_stack) { /* not looked at */
            *ret_resolution = (struct live_resolution){.open = thread->stack.depth};
            return 0;
        }
        calls[i] = live_call_of(streams, thread->process, &thread->stack.frames[i]);
    }
    *ret_resolution = live_resolve(stack, calls, thread->stack.depth);
    return 0;
}

/* Closes the calls that the thread's stack does not hold any more. */
static int resolve_by_stack(struct streams *streams, struct traced_thread *thread, struct live_stacks *stacks)
{
    struct live_resolution resolution = {.open = thread->stack.depth};
    struct live_stack stack = {0};
    int r = live_stack_frames(stacks, (pid_t)thread->tid, &stack);

    if (!r)
        r = judge_calls(streams, thread, &stack, &resolution);
    live_stack_release(&stack);
    if (r == -ENOMEM)
        return error_no_memory(&streams->error);
    r = streams_write_returns(streams, thread->writer, call_stack_cut(&thread->stack, resolution.open));
    if (r)
        return r;
    /* Of what another program had called before nothing is on the stack. */
    return resolution.certain && !thread->stack.some_may_be_gone
               ? thread_writer_settled(thread->writer, &streams->error)
               : thread_writer_infers(thread->writer, &streams->error);
}

int streams_resolve(struct streams *streams, struct live_stacks *stacks, struct error *err)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    int r = 0;

    for (struct traced_thread *thread = streams->registry.threads; !r && thread; thread = thread->hh.next) {
        if (!stacks || !is_uncertain(thread)) {
            r = streams_resolve_thread(streams, thread, now);
            continue;
        }
        r = resolve_losses(streams, thread, now);
        if (!r)
            r = resolve_by_stack(streams, thread, stacks);
    }
    for (struct traced_process *process = streams->registry.processes; !r && process;
         process = process->hh.next)
        r = goroutine_streams_end(streams, process, now, -1);
    if (r && err)
        *err = streams->error;
    return r;
}
