// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel side: probes on calls and returns, and the life of the traced processes.
 *
 * What holds here:
 * - Probes are inode-wide or of one process; only processes in `processes` are recorded. A child enters the
 * map in the fork itself, before it can run.
 * - The records of one thread stand in the ring in program order: a thread reserves its next record only
 * after the last one, and flushes what it has packed before. So a loss can be placed exactly: a thread whose
 * record did not fit is counted in `losses`, and the next record that does fit is preceded by a
 * WIRE_LOST.
 * - Life-cycle records must not get lost: when the ring is full they go to the small `overflow` ring; what
 * even that cannot hold is counted.
 * - A process that execs is stopped before its first instruction (SIGSTOP) and listed in `held`, so that the
 * new image can be probed; the collector lets it go. `held` is written before the record, so that a collector
 * that misses the record, or the guard of a dead collector, still finds the process.
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/arch.h"
#include "bpf/budget.h"
#include "bpf/callers.h"
#include "bpf/goroutines.h"
#include "bpf/inline.h"
#include "bpf/kernel_compat.h"
#include "bpf/libraries.h"
#include "bpf/lifecycle.h"
#include "bpf/losses.h"
#include "bpf/own_stack.h"
#include "bpf/pack.h"
#include "bpf/probe_cookie.h"
#include "bpf/processes.h"
#include "bpf/return_address.h"
#include "bpf/rewrites.h"
#include "bpf/rights.h"
#include "bpf/ring.h"
#include "bpf/shadow.h"
#include "bpf/sync.h"
#include "bpf/trigger.h"
#include "bpf/watched_calls.h"
#include "bpf/wire.h"

char LICENSE[] SEC("license") = "GPL";

/* A call or a return, wherever its probe stands. */
struct moment {
    __u64 sp;             /* WIRE_CALL and WIRE_RETURN say what it means */
    __u64 return_address; /* 0: must be read from [sp] */
    __u64 cookie;
};

/* Which slot the thread packs its calls into, if it has or gets one. A process with inline probes has plain
 * records, since each stands behind a place. */
static __always_inline void find_hit_slot(struct hit *hit)
{
    __u32 zero = 0;
    struct seen_thread *seen = packs ? bpf_map_lookup_elem(&seen_threads, &zero) : 0;

    if (seen)
        hit->slot = find_slot(hit->tid, (__u32)hit->task->tgid, &seen->slot, !(hit->flags & PROCESS_INLINE));
}

static __always_inline void fill_call(struct wire_call *record, const struct hit *hit,
                                      const struct wire_event *event)
{
    record->header.kind = event->kind;
    record->header.flags = event->flags;
    record->header.sp_high = (__u16)(event->sp >> 32);
    record->header.tid = hit->tid;
    record->header.ns = hit->stamped ? bpf_ktime_get_ns() : 0;
    record->sp_low = (__u32)event->sp;
    record->function = event->function;
}

/* A record of its own. Returns false when the ring is full. */
static __always_inline bool write_plain(const struct hit *hit, const struct wire_event *event)
{
    struct wire_call_from *record = 0;
    struct wire_call *call = 0;

    if (!report_loss(hit->tid))
        return false;
    if (event->kind != WIRE_CALL_FROM) {
        call = bpf_ringbuf_reserve(&ring, sizeof(*call), 0);
        if (!call)
            return false;
        fill_call(call, hit, event);
        bpf_ringbuf_submit(call, BPF_RB_NO_WAKEUP);
        return true;
    }
    record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (!record)
        return false;
    fill_call(&record->call, hit, event);
    record->return_address = event->return_address;
    record->gone = event->gone;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    return true;
}

static __always_inline bool can_pack(const struct hit *hit)
{
    __u32 index = hit->slot - 1;
    struct packed_slot *slot = hit->slot ? bpf_map_lookup_elem(&packed_slots, &index) : 0;

    return slot && !slot->broken && !(hit->flags & PROCESS_INLINE);
}

static __always_inline void write_event(const struct hit *hit, const struct wire_event *event)
{
    bool written;

    if (can_pack(hit))
        written = (!has_losses(hit->tid) || report_loss(hit->tid)) &&
                  pack_event(hit->slot - 1, event, hit->stamped ? bpf_ktime_get_ns() : 0);
    else
        written = write_plain(hit, event);
    if (!written)
        count_loss(hit->tid, event->kind == WIRE_RETURN);
}

static __always_inline void emit(const struct hit *hit, const struct moment *moment, __u8 kind)
{
    const struct wire_event event = {
        .sp = moment->sp,
        .function = (__u32)moment->cookie,
        .kind = kind,
        .flags = on_signal_stack(hit->task, moment->sp) ? WIRE_ON_SIGNAL_STACK : 0,
    };

    write_event(hit, &event);
}

static __always_inline struct shadow *hit_shadow(const struct hit *hit, bool keep)
{
    __u32 index = hit->slot - 1;
    struct slot_memory *memory = hit->slot ? bpf_map_lookup_elem(&slot_memories, &index) : 0;

    return memory ? &memory->shadow : shadow_of(hit->tid, keep);
}

/* A call that says where it came from. `seen`: its return will be recorded. */
static __always_inline void emit_call_from(const struct hit *hit, const struct moment *moment, bool seen)
{
    bool on_signal = on_signal_stack(hit->task, moment->sp), keep = !seen && !on_signal;
    struct shadow *shadow = hit_shadow(hit, keep);
    struct wire_event event = {
        .sp = moment->sp,
        .return_address = moment->return_address,
        .function = (__u32)moment->cookie,
        .kind = WIRE_CALL_FROM,
        .flags = (on_signal ? WIRE_ON_SIGNAL_STACK : 0) | (seen ? 0 : WIRE_RETURN_UNSEEN),
    };

    if (!event.return_address)
        event.return_address = return_address_at(hit->task, moment->sp);
    if (shadow)
        event.gone = update_shadow(hit->task, shadow, moment->sp, event.return_address, keep);
    write_event(hit, &event);
}

static __always_inline struct moment call_at(const struct pt_regs *ctx, __u64 cookie)
{
    __u64 above = cookie >> COOKIE_SP_SHIFT;
    struct moment moment = {.sp = stack_pointer(ctx) + above * 8, .cookie = cookie};

    if (cookie & COOKIE_AT_CALL) {
        moment.sp = stack_pointer(ctx) - CALL_PUSHES;
        moment.return_address = instruction_pointer(ctx) + CALL_LENGTH + above;
    }
    return moment;
}

/* With a budget the callback that calls are inside of may be one that was not recorded. */
static __always_inline bool can_probe_return(const struct hit *hit, const struct moment *moment)
{
    return !(moment->cookie & COOKIE_ENTRY_ONLY) && !(hit->flags & PROCESS_NO_RETURNS) &&
           !system_calls_are_watched(hit->task) && on_own_stack(hit->task, moment->sp) &&
           !(hit->flags & PROCESS_CHECK_CALLERS && (budget_ns || may_be_unwound(hit, moment->sp)));
}

/* The call that an entry's probe stands on comes right behind it. */
static __always_inline void emit_next(const struct hit *hit, const struct pt_regs *ctx, __u64 cookie)
{
    struct moment moment = {.sp = stack_pointer(ctx), .cookie = cookie + 1};

    if (cookie & COOKIE_NEXT_CALL) {
        moment.sp = stack_pointer(ctx) - CALL_PUSHES;
        moment.return_address = instruction_pointer(ctx) + CALL_LENGTH;
    }
    if (cookie & COOKIE_WANT_RETURN_ADDRESS || !(cookie & COOKIE_CALLS_ONLY))
        emit_call_from(hit, &moment, cookie & COOKIE_CALLS_ONLY);
    else
        emit(hit, &moment, WIRE_CALL);
}

/* With a trigger: whether the hit is inside a window, of which it says so when one ends or begins. */
static __always_inline bool trigger_admits(struct hit *hit, __u64 sp, __u64 cookie, bool *ret_opens)
{
    struct moment end = {};
    int verdict;

    verdict = trigger_verdict_of(hit, sp, cookie, &end.sp);
    if (end.sp) {
        end.sp += CALL_PUSHES; /* just above its slot, as after a return */
        hit->stamped = with_time;
        emit(hit, &end, WIRE_RETURN);
    }
    *ret_opens = verdict == TRIGGER_OPENS;
    if (verdict == TRIGGER_OUTSIDE) {
        count_outside(cookie);
        return false;
    }
    hit->stamped |= with_time && *ret_opens;
    return true;
}

/* At a call, or at a RET. Returns 0 when the return is to be caught, else 1. */
static __always_inline int on_call(struct pt_regs *ctx)
{
    struct hit hit = current_hit();
    struct moment moment;
    bool catch_return, opens = false;
    __u64 cookie;

    if (!hit.flags) {
        if (budget_ns && phase == PHASE_ATTACHING)
            budget_count_early(probe_cookie(ctx));
        return 1;
    }
    cookie = probe_cookie(ctx);
    moment = call_at(ctx, cookie);
    if (!budget_has_turn(&hit, cookie) ||
        (trigger_share && !trigger_admits(&hit, moment.sp, cookie, &opens)) || !budget_admits(&hit, cookie)) {
        if (hit.stamped)
            stamp_next();
        return 1;
    }
    find_hit_slot(&hit);
    if (!report_inline_place(&hit)) {
        count_loss(hit.tid, cookie & COOKIE_AT_RETURN);
        return 1;
    }
    if (cookie & COOKIE_AT_RETURN) {
        moment.sp += 8; /* RET is about to take the address away */
        emit(&hit, &moment, WIRE_RETURN);
        window_may_end(hit.tid, moment.sp);
        return 1;
    }
    catch_return = can_probe_return(&hit, &moment);
    if (opens && catch_return)
        window_is_probed(hit.tid);
    if (cookie & COOKIE_WANT_RETURN_ADDRESS || !(catch_return || cookie & COOKIE_CALLS_ONLY))
        emit_call_from(&hit, &moment, catch_return || cookie & (COOKIE_RETURN_SEEN | COOKIE_CALLS_ONLY));
    else
        emit(&hit, &moment, WIRE_CALL);
    if (cookie & (COOKIE_NEXT_CALL | COOKIE_NEXT_JUMP))
        emit_next(&hit, ctx, cookie);
    return !catch_return;
}

static __always_inline int on_return(struct pt_regs *ctx)
{
    struct hit hit = current_hit();
    struct moment moment = {.sp = stack_pointer(ctx)};

    if (!hit.flags)
        return 0;
    moment.cookie = probe_cookie(ctx);
    find_hit_slot(&hit);
    emit(&hit, &moment, WIRE_RETURN);
    window_may_end(hit.tid, moment.sp);
    return 0;
}

/* Call and return in one link, each call deciding about its return (kernels with uprobe sessions). */
SEC("uprobe.multi")
int on_session(struct pt_regs *ctx)
{
    return bpf_session_is_return() ? on_return(ctx) : on_call(ctx);
}

/* Calls only, for kernels without sessions: there a return probe could not be declined where it harms, and
 * all cookies say COOKIE_ENTRY_ONLY. */
SEC("uprobe.multi")
int on_call_only(struct pt_regs *ctx)
{
    on_call(ctx);
    return 0;
}

/* Goroutines: no return probes, they kill Go programs. */
SEC("uprobe.multi")
int on_go(struct pt_regs *ctx)
{
    return go_hit(ctx);
}

/* Locks and the like: no return probes, where returns count there are probes on RET instructions. */
SEC("uprobe.multi")
int on_sync(struct pt_regs *ctx)
{
    return sync_function(ctx);
}

SEC("raw_tp/sys_enter")
int on_sys_enter(struct bpf_raw_tracepoint_args *ctx)
{
    return sync_call_begins((const struct pt_regs *)ctx->args[0], ctx->args[1]);
}

SEC("raw_tp/sys_exit")
int on_sys_exit(struct bpf_raw_tracepoint_args *ctx)
{
    return sync_call_ends((const struct pt_regs *)ctx->args[0], (__s64)ctx->args[1]);
}
