/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls of inline probes on their way into the streams. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
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
                                   const struct stream_inline_call *call)
{
    struct known_caller caller = {.low = call->return_address, .is_known = true};

    caller.return_address = return_address_of(process, call->return_address);
    caller.caller = streams_caller_of(streams, process, call->function, caller.return_address);
    caller.depth =
        caller.caller == CALL_STACK_NO_CALLER ? streams_caller_depth(process, caller.return_address) : 0;
    return caller;
}

/* Where the call came from. Who calls main() is known by more than the place. */
static struct known_caller caller_of(const struct streams *streams, struct traced_process *process,
                                     const struct stream_inline_call *call)
{
    bool is_main = process->image && call->function == process->image->main_function;
    struct known_caller *known;

    if (!process->callers)
        process->callers = calloc(KNOWN_CALLERS, sizeof(*process->callers));
    if (!process->callers || is_main)
        return look_up(streams, process, call);
    known = &process->callers[(call->return_address ^ call->return_address >> 10) % KNOWN_CALLERS];
    if (!known->is_known || known->low != call->return_address)
        *known = look_up(streams, process, call);
    return *known;
}

/* Whether the call comes from the kernel: a signal handler returns to `mov $15, %rax; syscall`, rt_sigreturn,
 * which gdb and unwinders know it by, too. */
static bool is_handler(const struct traced_process *process, uint64_t return_address)
{
    static const uint8_t restorer[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
    const struct stream_code *code = return_address ? process_code_find(process, return_address) : NULL;
    const uint8_t *bytes;
    size_t size;

    if (!code || image_is_traced(code->image) || !code->image->elf)
        return false;
    bytes = elf_image_code(code->image->elf, return_address - code->load_bias, &size);
    return bytes && size >= sizeof(restorer) && !memcmp(bytes, restorer, sizeof(restorer));
}

#define NEAR (1u << 20)          /* a handler's frame on the stack that it interrupts is not further away */
#define SIGNAL_STACK (64u << 10) /* handlers use no more of a stack of their own */

/* Whether the call is on an alternate signal stack: one that a handler was entered on far from the frames
 * that it interrupted, or above them. */
static bool on_signal_stack(struct traced_thread *thread, uint64_t sp, uint64_t return_address)
{
    const struct call_stack *stack = &thread->stack;
    uint64_t innermost = stack->depth ? stack->frames[stack->depth - 1].sp : sp;

    if ((sp > innermost || innermost - sp > NEAR) && is_handler(thread->process, return_address))
        thread->signal_stack = sp;
    return thread->signal_stack && sp <= thread->signal_stack && thread->signal_stack - sp < SIGNAL_STACK;
}

int streams_inline_call(struct streams *streams, uint32_t tid, const struct stream_inline_call *call)
{
    struct traced_thread *thread = registry_thread(&streams->registry, tid);
    struct call_evidence evidence = {
        .sp = call->sp,
        .function = call->function,
        .caller = CALL_STACK_NO_CALLER,
        .return_unseen = true,
    };
    struct known_caller caller;

    if (!thread) {
        streams->counts.strays++;
        return 0;
    }
    caller = caller_of(streams, thread->process, call);
    evidence.return_address = caller.return_address;
    evidence.caller = caller.caller;
    evidence.caller_depth = caller.depth;
    evidence.on_signal_stack = on_signal_stack(thread, call->sp, evidence.return_address);
    return streams_write_call(streams, thread, &evidence, evidence.return_address, call->ns);
}

int streams_inline_lost(struct streams *streams, uint32_t tid, uint64_t calls)
{
    struct traced_thread *thread = registry_thread(&streams->registry, tid);

    if (!thread) {
        streams->counts.strays += calls;
        return 0;
    }
    return streams_write_loss(streams, thread, clock_ns(CLOCK_MONOTONIC), calls, 0);
}

pid_t streams_process_of(struct streams *streams, uint32_t tid)
{
    const struct traced_thread *thread = registry_thread(&streams->registry, tid);

    return thread ? thread->process->pid : 0;
}
