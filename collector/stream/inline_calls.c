/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls of inline probes on their way into the streams. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "collector/arch/thread_registers.h"
#include "collector/stream/process_code.h"
#include "collector/stream/streams_private.h"

/* Where a call returns to: a return address points behind the call, which may be the last instruction of its
 * mapping. */
static uint64_t return_address_of(const struct traced_process *process, uint32_t low)
{
    uint64_t at_call = process_code_complete(process, low - 1);

    return at_call ? at_call + 1 : 0;
}

/* Calls come from few places again and again: what those are is looked up once. */
#define KNOWN_CALLERS 1024

struct known_caller {
    uint64_t return_address; /* 0: the low half is in no code, or in more than one */
    uint32_t low;
    uint32_t caller; /* function, or CALL_STACK_NO_CALLER */
    uint64_t depth;  /* of its frame; 0: not known */
    bool is_known;
};

static struct known_caller look_up(const struct streams *streams, const struct traced_process *process,
                                   uint32_t function, uint32_t low)
{
    struct known_caller caller = {.low = low, .is_known = true};

    caller.return_address = return_address_of(process, low);
    caller.caller = streams_caller_of(streams, process, function, caller.return_address);
    caller.depth =
        caller.caller == CALL_STACK_NO_CALLER ? streams_caller_depth(process, caller.return_address) : 0;
    return caller;
}

/* Where the call came from. Who calls main() is known by more than the place. */
static struct known_caller caller_of(const struct streams *streams, struct traced_process *process,
                                     uint32_t function, uint32_t low)
{
    bool is_main = process->image && function == process->image->main_function;
    struct known_caller *known;

    if (!process->callers)
        process->callers = calloc(KNOWN_CALLERS, sizeof(*process->callers));
    if (!process->callers || is_main)
        return look_up(streams, process, function, low);
    known = &process->callers[(low ^ low >> 10) % KNOWN_CALLERS];
    if (!known->is_known || known->low != low)
        *known = look_up(streams, process, function, low);
    return *known;
}

/* Whether the call comes from the kernel: a signal handler returns to a call of rt_sigreturn, which gdb and
 * unwinders know it by, too. */
static bool is_handler(const struct traced_process *process, uint64_t return_address)
{
    const struct stream_code *code = return_address ? process_code_find(process, return_address) : NULL;
    const uint8_t *bytes;
    size_t size;

    if (!code || image_is_traced(code->image) || !code->image->elf)
        return false;
    bytes = elf_image_code(code->image->elf, return_address - code->load_bias, &size);
    return bytes && size >= CODE_SIGRETURN_BYTES && code_is_sigreturn(bytes);
}

#define NEAR (1u << 20)          /* a handler's frame on the stack that it interrupts is not further away */
#define SIGNAL_STACK (64u << 10) /* handlers use no more of a stack of their own */

bool streams_is_on_signal_stack(const struct traced_thread *thread, uint64_t sp)
{
    return thread->signal_stack && sp <= thread->signal_stack && thread->signal_stack - sp < SIGNAL_STACK;
}

/* Whether the call is on an alternate signal stack: one that a handler was entered on far from the frames
 * that it interrupted, or above them. */
static bool on_signal_stack(struct traced_thread *thread, uint64_t sp, uint64_t return_address)
{
    const struct call_stack *stack = &thread->stack;
    uint64_t innermost = stack->depth ? stack->frames[stack->depth - 1].sp : sp;

    if ((sp > innermost || innermost - sp > NEAR) && is_handler(thread->process, return_address)) {
        thread->signal_stacks += thread->signal_stack != sp;
        thread->signal_stack = sp;
    }
    return streams_is_on_signal_stack(thread, sp);
}

/* A call that has to be worked out. `ret_step` is what it was. */
static int write_call(struct streams *streams, struct traced_thread *thread,
                      const struct agent_record *record, uint64_t ns, struct thread_step *ret_step)
{
    struct call_evidence evidence = {
        .sp = agent_record_sp(record),
        .function = record->function - 1,
        .return_unseen = true,
    };
    struct known_caller caller =
        caller_of(streams, thread->process, evidence.function, record->return_address);

    evidence.return_address = caller.return_address;
    evidence.caller = caller.caller;
    evidence.caller_depth = caller.depth;
    evidence.on_signal_stack = on_signal_stack(thread, evidence.sp, evidence.return_address);
    return streams_write_call(streams, thread, &evidence, evidence.return_address, ns, ret_step);
}

/* What is known of the thread's paths is of what its records and stacks are read with now. */
static void expect_paths(struct traced_thread *thread)
{
    inline_paths_expect(&thread->paths, &thread->stack, thread->process->epoch + thread->signal_stacks);
}

/* Learns from it what such a call does. */
static int write_new_call(struct streams *streams, struct traced_thread *thread,
                          const struct agent_record *record, uint64_t ns)
{
    uint64_t signal_stacks = thread->signal_stacks;
    struct thread_step step;
    uint32_t from;
    int r;

    expect_paths(thread);
    from = inline_paths_stack(&thread->paths, &thread->stack);
    r = write_call(streams, thread, record, ns, &step);
    if (!r && from && signal_stacks == thread->signal_stacks)
        inline_paths_learn(&thread->paths, &thread->stack, from, record, &step);
    return r;
}

/* Steps on their way to the writer. */
struct known_calls {
    size_t count;
    struct thread_step steps[KEPT_STEPS_AT_ONCE];
    uint32_t numbers[KEPT_STEPS_AT_ONCE];
};

static size_t at_once(size_t count)
{
    return count < KEPT_STEPS_AT_ONCE ? count : KEPT_STEPS_AT_ONCE;
}

static struct inline_stretch find_stretch(const struct traced_thread *thread,
                                          const struct agent_record *records, size_t count)
{
    return inline_history_find(&thread->history, &thread->paths, inline_paths_top(&thread->stack), records,
                               count);
}

/* Takes the first calls one by one, as far as such were met before, up to where a stretch begins. */
static struct inline_stretch follow_to_stretch(struct traced_thread *thread,
                                               const struct agent_record *records, size_t count,
                                               struct known_calls *known)
{
    struct inline_stretch stretch = {0};

    while (known->count < at_once(count) && !stretch.count) {
        size_t at = known->count;

        if (!inline_paths_follow(&thread->paths, &thread->stack, &records[at], 1, &known->steps[at],
                                 &known->numbers[at]))
            break;
        known->count++;
        stretch = find_stretch(thread, &records[known->count], count - known->count);
    }
    return stretch;
}

/* Writes calls that are taken one by one, and keeps them: their like may come again. */
static int write_to_stretch(struct traced_thread *thread, const struct agent_record *records, size_t count,
                            size_t *ret_written, struct inline_stretch *ret_stretch)
{
    struct known_calls known = {.count = 0};
    struct kept_steps kept;
    int r;

    *ret_stretch = follow_to_stretch(thread, records, count, &known);
    *ret_written = known.count;
    if (!known.count)
        return 0;
    r = thread_writer_keep(thread->writer, known.steps, known.count, &kept);
    if (!r)
        inline_history_add(&thread->history, &thread->paths, records, known.numbers, &kept);
    return r;
}

/* Writes a stretch; it has no records when the writer knows nothing of it any more. */
static int write_stretch(struct traced_thread *thread, struct inline_stretch *stretch)
{
    int r = thread_writer_again(thread->writer, &stretch->kept);

    if (r == -ESTALE || r == -EINVAL) {
        inline_history_forget(&thread->history);
        stretch->count = 0;
        return 0;
    }
    if (!r)
        r = inline_paths_skip_to(&thread->paths, &thread->stack, stretch->last_step);
    if (!r)
        inline_history_served(&thread->history, stretch);
    return r;
}

/* Writes the first calls, as far as such were met before: stretches, and what is between them. */
static int write_repeated_calls(struct traced_thread *thread, const struct agent_record *records,
                                size_t count, size_t *ret_written)
{
    struct inline_stretch stretch = find_stretch(thread, records, count);
    size_t done = 0, written = 1;
    int r = 0;

    while (!r && done < count && written) {
        if (stretch.count)
            r = write_stretch(thread, &stretch);
        if (!r && stretch.count) {
            done += stretch.count;
            stretch = find_stretch(thread, &records[done], count - done);
        } else if (!r) {
            r = write_to_stretch(thread, &records[done], count - done, &written, &stretch);
            done += written;
        }
    }
    *ret_written = done;
    return r;
}

/* The same of a thread that does not repeat itself. */
static int write_other_calls(struct traced_thread *thread, const struct agent_record *records, size_t count,
                             size_t *ret_written)
{
    struct known_calls known;
    int r = 0;

    *ret_written = 0;
    do {
        known.count = inline_paths_follow(&thread->paths, &thread->stack, &records[*ret_written],
                                          at_once(count - *ret_written), known.steps, known.numbers);
        r = known.count ? thread_writer_steps(thread->writer, known.steps, known.count) : 0;
        *ret_written += known.count;
    } while (!r && known.count == KEPT_STEPS_AT_ONCE);
    return r;
}

/* Writes the first calls, as far as such were met before; returns how many. */
static int write_known_calls(struct streams *streams, struct traced_thread *thread,
                             const struct agent_record *records, size_t count, size_t *ret_written)
{
    int r;

    expect_paths(thread);
    r = inline_history_is_kept(&thread->history, &thread->paths, count)
            ? write_repeated_calls(thread, records, count, ret_written)
            : write_other_calls(thread, records, count, ret_written);
    return r ? error_set(&streams->error, r, NULL, "cannot append an event") : 0;
}

/* Whether what calls do can be looked up: not where each is told with its place, or nothing is inferred. */
static bool has_paths(const struct streams *streams, const struct traced_thread *thread)
{
    return !streams->options.call_sites && !streams->options.watch &&
           thread->process->returns != TRACE_RETURNS_NONE;
}

/* Stack pointers that are made up could open calls for ever. */
#define OPEN_CALLS_MAX (1u << 22)

/* Takes calls, none of the records is an exit. */
static int write_calls(struct streams *streams, struct traced_thread *thread,
                       const struct agent_record *records, size_t count, uint64_t ns)
{
    size_t done = 0, written;
    int r = 0;

    if (!has_paths(streams, thread)) {
        while (!r && done < count)
            r = write_call(streams, thread, &records[done++], ns, NULL);
        return r;
    }
    /* The first call may be told with its time, between the returns before it and itself. */
    if (streams_wants_anchor(streams, thread, ns) && count)
        r = write_new_call(streams, thread, &records[done++], ns);
    while (!r && done < count) {
        r = write_known_calls(streams, thread, &records[done], count - done, &written);
        done += written;
        if (!r && done < count)
            r = write_new_call(streams, thread, &records[done++], ns);
    }
    return r;
}

static size_t count_calls(const struct agent_record *records, size_t count)
{
    size_t calls = 0;

    while (calls < count && !agent_record_is_exit(&records[calls]))
        calls++;
    return calls;
}

int streams_inline_calls(struct streams *streams, uint32_t tid, const struct agent_record *records,
                         size_t count, uint64_t ns)
{
    struct traced_thread *thread = registry_thread(&streams->registry, tid);
    size_t done = 0, calls, exits;
    int r = 0;

    if (!thread) {
        streams->counts.strays += count;
        return 0;
    }
    if (thread->stack.depth > OPEN_CALLS_MAX)
        return -ELOOP;
    thread->has_inline_calls = true;
    while (!r && done < count) {
        calls = count_calls(&records[done], count - done);
        r = write_calls(streams, thread, &records[done], calls, ns);
        done += calls;
        if (r || done == count)
            break;
        r = streams_write_exits(streams, thread, &records[done], count - done, ns, &exits);
        done += exits;
    }
    return r;
}

int streams_inline_lost(struct streams *streams, uint32_t tid, uint64_t calls)
{
    struct traced_thread *thread = registry_thread(&streams->registry, tid);

    if (!thread) {
        streams->counts.strays += calls;
        return 0;
    }
    return streams_write_loss(streams, thread, clock_ns(CLOCK_MONOTONIC), calls,
                              streams_sees_exits(thread->process) ? STREAM_LOSS_MIXED : 0);
}

int streams_process_loss(struct streams *streams, pid_t pid, const char *what)
{
    const struct traced_process *process = registry_process(&streams->registry, pid);
    const char *path = process && process->exe ? process->exe : "?", *slash = strrchr(path, '/');
    char cause[256];

    snprintf(cause, sizeof(cause), "process %d (%.64s): %s", (int)pid, slash ? slash + 1 : path, what);
    return trace_writer_loss(streams->writer, clock_ns(CLOCK_REALTIME), 0, cause, &streams->error);
}

pid_t streams_process_of(struct streams *streams, uint32_t tid)
{
    const struct traced_thread *thread = registry_thread(&streams->registry, tid);

    return thread ? thread->process->pid : 0;
}
