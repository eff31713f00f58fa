/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Windows: with a trigger, a thread's calls are recorded between the entry and the return of some functions
 * only, and a share of the times; all others are counted.
 *
 * A window is open as long as the frame that opened it is there. Its end is found at the thread's next hit,
 * by the same evidence that returns are inferred from elsewhere: a call with an entry stack pointer at or
 * above that frame, or from deeper down while the frame's slot no longer holds its return address. A return
 * that is probed says so itself. What happens on another stack meanwhile (a signal handler, a coroutine) is
 * inside. A tail call out of the function takes its frame over, and so ends it.
 *
 * Windows that are not recorded, for the share, are followed as well: a recursive call inside is not another
 * time.
 */
#ifndef TRACECTL_BPF_TRIGGER_H
#define TRACECTL_BPF_TRIGGER_H

#include "bpf/arch.h"
#include "bpf/budget.h"
#include "bpf/limits.h"
#include "bpf/own_stack.h"
#include "bpf/processes.h"
#include "bpf/return_address.h"
#include "bpf/shadow.h"

/* Of 2^32 - 1: how many of the times are recorded; 0: there is no trigger, and everything is. */
__u32 trigger_share;

struct trigger_window {
    __u64 sp; /* of the frame, at its entry */
    __u64
        return_address; /* while the frame is there; 0: not known, or its return is probed, which says more */
    __u8 recorded, on_signal_stack;
    __u8 unused[6];
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, MAX_THREAD_STACKS);
    __type(key, __u32); /* tid */
    __type(value, struct trigger_window);
} trigger_windows SEC(".maps");

static __always_inline bool slot_has_changed(const struct hit *hit, const struct trigger_window *window)
{
    __u64 slot = window->return_address ? return_address_at(hit->task, window->sp) : 0;

    return slot && slot != window->return_address;
}

/* At an event with that stack pointer. `at_return`: on a RET, which is the frame's own at its entry's
 * pointer. */
static __always_inline bool window_is_over(const struct hit *hit, const struct trigger_window *window,
                                           __u64 sp, bool at_return)
{
    bool on_signal = on_signal_stack(hit->task, sp);

    if (on_signal != window->on_signal_stack)
        return !on_signal; /* a handler inside it, or it was in a handler that is over */
    if (sp > window->sp)
        return sp - window->sp < SHADOW_REACH;
    if (window->sp - sp >= SHADOW_REACH)
        return false;
    if (sp == window->sp)
        return !at_return;
    return slot_has_changed(hit, window);
}

enum trigger_verdict { TRIGGER_OUTSIDE, TRIGGER_INSIDE, TRIGGER_OPENS };

/* Opens a window, recorded or not. */
static __always_inline int window_begins(const struct hit *hit, __u64 sp)
{
    struct trigger_window window = {.sp = sp, .on_signal_stack = on_signal_stack(hit->task, sp)};
    __u32 tid = hit->tid;

    window.return_address = return_address_at(hit->task, sp);
    window.recorded = trigger_share == ~0u || bpf_get_prandom_u32() < trigger_share;
    if (bpf_map_update_elem(&trigger_windows, &tid, &window, BPF_ANY))
        return TRIGGER_OUTSIDE; /* its end would be unknown */
    return window.recorded ? TRIGGER_OPENS : TRIGGER_OUTSIDE;
}

/* Where a hit is. `*ret_ended`: the frame of a recorded window is gone; 0: of none. */
static __always_inline int trigger_verdict_of(const struct hit *hit, __u64 sp, __u64 cookie, __u64 *ret_ended)
{
    __u32 tid = hit->tid, index = (__u32)cookie;
    struct trigger_window *window = bpf_map_lookup_elem(&trigger_windows, &tid);
    struct budget_slot *slot = bpf_map_lookup_elem(&budget_slots, &index);
    bool at_return = cookie & COOKIE_AT_RETURN;

    if (window && !window_is_over(hit, window, sp, at_return))
        return window->recorded ? TRIGGER_INSIDE : TRIGGER_OUTSIDE;
    if (window) {
        *ret_ended = window->recorded ? window->sp : 0;
        bpf_map_delete_elem(&trigger_windows, &tid);
    }
    return slot && slot->trigger && !at_return ? window_begins(hit, sp) : TRIGGER_OUTSIDE;
}

/* The frame's return is probed: its slot holds another address from now on. */
static __always_inline void window_is_probed(__u32 tid)
{
    struct trigger_window *window = bpf_map_lookup_elem(&trigger_windows, &tid);

    if (window)
        window->return_address = 0;
}

/* A return to `sp`, just above its slot, has been recorded. */
static __always_inline void window_may_end(__u32 tid, __u64 sp)
{
    struct trigger_window *window = trigger_share ? bpf_map_lookup_elem(&trigger_windows, &tid) : 0;

    if (window && window->sp == sp - CALL_PUSHES)
        bpf_map_delete_elem(&trigger_windows, &tid);
}

static __always_inline void count_outside(__u64 cookie)
{
    __u32 index = (__u32)cookie, next = index + 1;
    struct budget_slot *slot = bpf_map_lookup_elem(&budget_slots, &index);

    if (slot && !(cookie & COOKIE_AT_RETURN))
        __sync_fetch_and_add(&slot->outside, 1);
    if (!(cookie & (COOKIE_NEXT_CALL | COOKIE_NEXT_JUMP)))
        return;
    slot = bpf_map_lookup_elem(&budget_slots, &next);
    if (slot)
        __sync_fetch_and_add(&slot->outside, 1);
}

#endif
