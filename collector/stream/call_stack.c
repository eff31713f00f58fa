/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stream/call_stack.h"

#include <stdlib.h>

#include "base/array.h"

void call_stack_release(struct call_stack *stack)
{
    free(stack->frames);
    *stack = (struct call_stack){0};
}

/* Depth after closing the calls whose entry pointer is below `limit` on the stack that the event happened on.
 */
static size_t depth_below(const struct call_stack *stack, uint64_t limit, bool on_signal_stack)
{
    size_t depth = stack->depth;

    /* On the ordinary stack again: whatever ran on the signal stack is over (rule 6). */
    while (!on_signal_stack && depth && stack->frames[depth - 1].on_signal_stack)
        depth--;
    while (depth && stack->frames[depth - 1].on_signal_stack == on_signal_stack &&
           stack->frames[depth - 1].sp < limit)
        depth--;
    return depth;
}

/* The caller is nearly always the innermost open call; further out than this none is compared, so that a call
 * costs the same however deep the stack is. What is not found stays open until rule 1 closes it. */
#define CALLER_SEARCH 256

/* Depth after closing the calls above the innermost frame of `caller`, if it is open at all (rule 3). */
static size_t depth_of_caller(const struct call_stack *stack, size_t depth, uint32_t caller)
{
    size_t last = depth > CALLER_SEARCH ? depth - CALLER_SEARCH : 0;

    for (size_t d = depth; d > last; d--)
        if (stack->frames[d - 1].function == caller)
            return d;
    return depth;
}

/* MAX_URETPROBE_DEPTH of the kernel (include/linux/uprobes.h): further in, return probes are left out. */
#define RETURN_PROBE_DEPTH 64

bool call_frame_return_is_seen(const struct call_frame *frame)
{
    return !frame->return_unseen && frame->probed <= RETURN_PROBE_DEPTH;
}

/* Whether the call may have returned without a trace. */
static bool may_be_gone(const struct call_frame *frame, uint32_t never_returns)
{
    return !call_frame_return_is_seen(frame) && !(frame->return_unseen && frame->function == never_returns);
}

/* Whether the call is inside the innermost of `depth` open ones only if that has not returned. */
static bool is_assumed(const struct call_stack *stack, size_t depth, uint32_t caller, uint32_t never_returns)
{
    if (!depth)
        return stack->innermost_may_be_gone;
    return stack->frames[depth - 1].function != caller &&
           may_be_gone(&stack->frames[depth - 1], never_returns);
}

/* Whether a frame and a call lie so far apart that one of them is on a stack of the program's own making. */
static bool is_far(const struct call_frame *frame, const struct call_evidence *call)
{
    uint64_t distance = frame->sp > call->sp ? frame->sp - call->sp : call->sp - frame->sp;

    return frame->on_signal_stack == call->on_signal_stack && distance > CALL_STACK_MOST;
}

/* Whether pointers of different stacks were compared to find that the call is inside the innermost of `depth`
 * open ones: those that count as returned may be open. */
static bool switches_stacks(const struct call_stack *stack, size_t depth, const struct call_evidence *call)
{
    return (depth && is_far(&stack->frames[depth - 1], call)) ||
           (depth < stack->depth &&
            (is_far(&stack->frames[depth], call) || is_far(&stack->frames[stack->depth - 1], call)));
}

/* Calls with entry pointers up to this have returned. */
static uint64_t gone_at(const struct call_evidence *call)
{
    uint64_t gone = call->gone > call->sp ? call->gone : call->sp;
    /* From this call's return address up to where the caller's own lies (rule 5). */
    uint64_t inside = call->sp + call->caller_depth + sizeof(uint64_t) - 1;

    return !call->caller_depth || gone > inside ? gone : inside;
}

int call_stack_call(struct call_stack *stack, const struct call_evidence *call, uint32_t never_returns,
                    struct call_effect *ret_effect)
{
    size_t depth;

    if (array_reserve(&stack->frames, &stack->capacity, stack->depth + 1))
        return -ENOMEM;
    depth = depth_below(stack, gone_at(call) + 1, call->on_signal_stack);
    if (call->caller != CALL_STACK_NO_CALLER)
        depth = depth_of_caller(stack, depth, call->caller);
    *ret_effect = (struct call_effect){
        .closed = stack->depth - depth,
        .assumed =
            is_assumed(stack, depth, call->caller, never_returns) || switches_stacks(stack, depth, call),
    };
    stack->frames[depth] = (struct call_frame){
        .sp = call->sp,
        .return_address = call->return_address,
        .function = call->function,
        .on_signal_stack = call->on_signal_stack,
        .return_unseen = call->return_unseen,
        .probed = (depth ? stack->frames[depth - 1].probed : 0) + !call->return_unseen,
    };
    stack->depth = depth + 1;
    return 0;
}

size_t call_stack_return(struct call_stack *stack, uint64_t sp, bool on_signal_stack)
{
    size_t depth = depth_below(stack, sp, on_signal_stack), closed = stack->depth - depth;

    stack->depth = depth;
    return closed;
}

size_t call_stack_exit(struct call_stack *stack, uint64_t sp, uint32_t function, bool on_signal_stack)
{
    size_t depth = depth_below(stack, sp, on_signal_stack), closed;
    const struct call_frame *frame = depth ? &stack->frames[depth - 1] : NULL;

    if (!frame || frame->sp != sp || frame->function != function || frame->on_signal_stack != on_signal_stack)
        return 0;
    closed = stack->depth - (depth - 1);
    stack->depth = depth - 1;
    return closed;
}

size_t call_stack_cut(struct call_stack *stack, size_t depth)
{
    size_t closed = stack->depth > depth ? stack->depth - depth : 0;

    stack->depth -= closed;
    return closed;
}

void call_stack_replace(struct call_stack *stack, uint32_t never_returns)
{
    stack->some_may_be_gone = call_stack_is_uncertain(stack, never_returns);
    if (stack->depth)
        stack->innermost_may_be_gone = may_be_gone(&stack->frames[stack->depth - 1], never_returns);
    stack->depth = 0;
}

bool call_stack_is_uncertain(const struct call_stack *stack, uint32_t never_returns)
{
    if (stack->some_may_be_gone)
        return true;
    for (size_t d = 0; d < stack->depth; d++)
        if (may_be_gone(&stack->frames[d], never_returns))
            return true;
    return false;
}
