/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stacks/live_resolve.h"

static bool lies_in(const struct live_call *call, uint64_t address)
{
    return address >= call->start && address < call->end;
}

/* The frame with this CFA, or NULL. */
static const struct live_frame *find_frame(const struct live_stack *stack, uint64_t cfa)
{
    size_t low = 0, high = stack->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct live_frame *frame = &stack->frames[middle];

        if (frame->cfa == cfa)
            return frame;
        if (frame->cfa && frame->cfa < cfa)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

enum live_verdict live_call_verdict(const struct live_stack *stack, const struct live_call *call)
{
    const struct live_frame *frame;

    if (call->sp < stack->low || !stack->count)
        return LIVE_UNKNOWN;
    if (call->sp >= stack->complete_to) {
        /* The outermost frame has no CFA to compare with: it was not called. */
        return stack->whole && lies_in(call, stack->frames[stack->count - 1].pc) ? LIVE_OPEN : LIVE_UNKNOWN;
    }
    frame = find_frame(stack, call->sp + 8);
    if (!frame)
        return LIVE_RETURNED;
    if (lies_in(call, frame->pc) || (frame->callee && lies_in(call, frame->callee)))
        return LIVE_OPEN;
    if (call->return_address && frame->return_address != call->return_address)
        return LIVE_RETURNED;
    return LIVE_UNKNOWN;
}

struct live_resolution live_resolve(const struct live_stack *stack, const struct live_call *calls,
                                    size_t count)
{
    struct live_resolution resolution = {.open = count, .certain = true};

    while (resolution.open && live_call_verdict(stack, &calls[resolution.open - 1]) == LIVE_RETURNED)
        resolution.open--;
    for (size_t i = 0; i < resolution.open && resolution.certain; i++)
        resolution.certain = live_call_verdict(stack, &calls[i]) == LIVE_OPEN;
    return resolution;
}
