/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls of one thread that are recorded by inline probes go another way than those that uprobes record. Their
 * order is kept by saying, before each of the latter, how far the thread has come with the former: its cursor
 * (collector/arch/record.h), which lies in its thread control block beside the name of the thread that it
 * is of. Which thread that is the kernel says, when it takes its slots: WIRE_CLAIM.
 *
 * The child of vfork() has its parent's memory and thread control block, so its calls continue in its parent's
 * slots while that stands still. WIRE_SLOTS_SHARED says where they begin, WIRE_SLOTS_BACK where they end, in
 * the last moment before the kernel lets the parent continue. Threads that share a thread control block and run
 * at the same time are told when they are made, and stopped until the collector has marked the block.
 */
#ifndef TRACECTL_BPF_INLINE_H
#define TRACECTL_BPF_INLINE_H

#include "bpf/arch.h"
#include "bpf/kernel_compat.h"
#include "bpf/losses.h"
#include "bpf/processes.h"
#include "bpf/ring.h"

#define INLINE_SLOTS 0x80          /* AGENT_CURSOR, and AGENT_OWNER and AGENT_LOSER behind it */
#define INLINE_TID 0x2d0           /* AGENT_TID */
#define INLINE_ID ((1u << 22) - 1) /* of a name, what is not the key (AGENT_KEY_SHIFT) */

struct inline_slots {
    __u64 cursor;
    __u32 owner, loser;
};

/* In a forked child that has not called anything yet the slots are still its parent's: nothing is read by
 * their cursor, for nothing of the child's has been. */
static __always_inline bool is_name_of(__u32 name, __u32 tid)
{
    return name && !((name - tid) & INLINE_ID);
}

/* How far the current task has come; 0: it has recorded nothing. */
static __always_inline __u64 inline_cursor(const struct task_struct *task)
{
    const char *block = (const char *)thread_block_of(task);
    struct inline_slots slots;
    __u32 tid;

    if (bpf_probe_read_user(&slots, sizeof(slots), block + INLINE_SLOTS) ||
        bpf_probe_read_user(&tid, sizeof(tid), block + INLINE_TID) ||
        (!is_name_of(slots.owner, tid) && !is_name_of(slots.loser, tid)))
        return 0;
    return slots.cursor;
}

/* Returns false when the ring is full: then what comes next must not be reported either. */
static __always_inline bool report_inline_place(const struct hit *hit)
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

/* A thread takes its slots: in the agent, in whatever process that has it. */
SEC("uprobe.multi")
int on_claim(struct pt_regs *ctx)
{
    const struct task_struct *task = bpf_get_current_task_btf();
    struct wire_claim *record = reserve_life_cycle(sizeof(*record), WIRE_CLAIM, (__u32)task->pid);
    __u64 arguments[FUNCTION_ARGUMENTS + 1];

    if (!record)
        return 0;
    read_arguments(ctx, arguments);
    record->ticket = (__u32)arguments[1];
    record->area = (__u32)arguments[2];
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    return 0;
}

const volatile bool reports_slots = true; /* on_release() is called in time */

static __always_inline bool has_block_of(const struct task_struct *child, const struct task_struct *parent)
{
    return task_to_read(child)->mm == task_to_read(parent)->mm &&
           thread_block_of(child) == thread_block_of(parent);
}

static __always_inline bool shares_slots(const struct task_struct *parent, const struct task_struct *child)
{
    return reports_slots && child->tgid != parent->tgid && has_block_of(child, parent);
}

#define CLONE_VFORK 0x4000
#define NO_THREAD_OF_A_PROGRAM 0x4010 /* PF_USER_WORKER, PF_IO_WORKER */

/* Threads that are being made on their makers' thread control block, and run beside them (or stand in for
 * them, and nothing would report when they do no more). */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, MAX_LOSING_THREADS);
    __type(key, __u32); /* tid */
    __type(value, __u32);
} sharers SEC(".maps");

/* Comes before sched_process_fork, which does not tell how the thread is made. */
SEC("tp_btf/task_newtask")
int BPF_PROG(on_new_task, struct task_struct *child, __u64 clone_flags)
{
    const struct task_struct *parent = bpf_get_current_task_btf();
    struct process_state *state = process_of(parent);
    __u32 tid = (__u32)child->pid, one = 1;
    bool sharing = clone_flags & CLONE_VFORK && shares_slots(parent, child);

    if (state && state->flags & PROCESS_INLINE && has_block_of(child, parent) && !sharing &&
        !(child->flags & NO_THREAD_OF_A_PROGRAM))
        bpf_map_update_elem(&sharers, &tid, &one, BPF_ANY);
    return 0;
}

static __always_inline bool shares_block(const struct task_struct *child)
{
    __u32 tid = (__u32)child->pid;

    return !bpf_map_delete_elem(&sharers, &tid);
}

/* The current task has made a child that works on its slots. */
static __always_inline void report_slots_shared(const struct task_struct *parent,
                                                const struct task_struct *child, bool followed)
{
    struct wire_slots *record = reserve_life_cycle(sizeof(*record), WIRE_SLOTS_SHARED, (__u32)child->pid);

    if (!record)
        return;
    record->parent_tid = (__u32)parent->pid;
    record->followed = followed;
    record->cursor = inline_cursor(parent);
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* The current task leaves its memory, and its parent may continue. */
static __always_inline void on_release(struct task_struct *task)
{
    struct process_state *state = process_of(task);
    __u32 tgid = (__u32)task->tgid;
    struct wire_inline *record;

    if (!state || !(state->flags & PROCESS_SHARES_SLOTS))
        return;
    state->flags &= ~(__u32)PROCESS_SHARES_SLOTS;
    if (!state->flags) /* it is not followed */
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
