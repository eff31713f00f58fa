/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls of one thread that are recorded by inline probes go another way than those that uprobes record. Their
 * order is kept by saying, before each of the latter, how far the thread has come with the former: its cursor
 * (collector/agent/record.h), which lies in its thread control block beside the id of the thread that it is
 * of.
 *
 * The child of vfork() has its parent's memory and thread control block, so its calls go on in its parent's
 * slots while that stands still. WIRE_SLOTS_LENT says where they begin, WIRE_SLOTS_BACK where they end, in
 * the last moment before the kernel lets the parent go on.
 */
#ifndef TRACECTL_BPF_INLINE_H
#define TRACECTL_BPF_INLINE_H

#include "bpf/losses.h"
#include "bpf/processes.h"
#include "bpf/ring.h"

#define INLINE_SLOTS 0x80 /* AGENT_CURSOR, and AGENT_OWNER and AGENT_LOSER behind it */
#define INLINE_TID 0x2d0  /* AGENT_TID */

struct inline_slots {
    __u64 cursor;
    __u32 owner, loser;
};

/* How far the current task has come; 0: it has recorded nothing. */
static __always_inline __u64 inline_cursor(const struct task_struct *task)
{
    const char *block = (const char *)task->thread.fsbase;
    struct inline_slots slots;
    __u32 tid;

    if (bpf_probe_read_user(&slots, sizeof(slots), block + INLINE_SLOTS) ||
        bpf_probe_read_user(&tid, sizeof(tid), block + INLINE_TID) ||
        (slots.owner != tid && slots.loser != tid))
        return 0;
    return slots.cursor;
}

/* Returns false when there is no room to say it: then what comes next must not be said either. */
static __always_inline bool tell_inline_place(const struct hit *hit)
{
    struct wire_inline *record;

    if (!(hit->flags & PROCESS_INLINE))
        return true;
    if (!report_loss(hit->tid))
        return false;
    record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (!record)
        return false;
    record->header.kind = WIRE_INLINE;
    record->header.flags = 0;
    record->header.sp_high = 0;
    record->header.tid = hit->tid;
    record->header.ns = 0;
    record->cursor = inline_cursor(hit->task);
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    return true;
}

const volatile bool tells_slots = true; /* on_release() is called in time */

static __always_inline bool borrows_slots(const struct task_struct *parent, const struct task_struct *child)
{
    return tells_slots && child->tgid != parent->tgid && child->mm == parent->mm &&
           child->thread.fsbase == parent->thread.fsbase;
}

/* The current task has made a child that works on its slots. */
static __always_inline void tell_slots_lent(const struct task_struct *parent, const struct task_struct *child,
                                            bool followed)
{
    struct wire_slots *record = reserve_life_cycle(sizeof(*record), WIRE_SLOTS_LENT, (__u32)child->pid);

    if (!record)
        return;
    record->parent_tid = (__u32)parent->pid;
    record->followed = followed;
    record->cursor = inline_cursor(parent);
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* The current task leaves its memory, and its parent may go on. */
static __always_inline void on_release(struct task_struct *task)
{
    struct process_state *state = process_of(task);
    __u32 tgid = (__u32)task->tgid;
    struct wire_inline *record;

    if (!state || !(state->flags & PROCESS_BORROWS))
        return;
    state->flags &= ~(__u32)PROCESS_BORROWS;
    if (!state->flags) /* nobody follows it */
        bpf_map_delete_elem(&processes, &tgid);
    record = reserve_life_cycle(sizeof(*record), WIRE_SLOTS_BACK, (__u32)task->pid);
    if (!record)
        return;
    record->cursor = inline_cursor(task);
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* An exec that cannot fail any more; the old memory is still there. */
SEC("tp_btf/sched_prepare_exec")
int BPF_PROG(on_prepare_exec, struct task_struct *task)
{
    on_release(task);
    return 0;
}

#endif
