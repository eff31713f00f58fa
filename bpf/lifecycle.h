/* SPDX-License-Identifier: GPL-2.0-only */
/* The life of the traced processes. */
#ifndef TRACECTL_BPF_LIFECYCLE_H
#define TRACECTL_BPF_LIFECYCLE_H

#include "bpf/arch.h"
#include "bpf/areas.h"
#include "bpf/callers.h"
#include "bpf/hold.h"
#include "bpf/inline.h"
#include "bpf/losses.h"
#include "bpf/own_stack.h"
#include "bpf/processes.h"
#include "bpf/rights.h"
#include "bpf/ring.h"
#include "bpf/shadow.h"
#include "bpf/trigger.h"

const volatile bool follow_children = true;

/* What a thread has packed comes before what it does now. If the ring is full it is packed all the same. */
static __always_inline void flush_current(const struct task_struct *task)
{
    if (packs)
        flush_thread((__u32)task->pid);
}

/* What the kernel side knows of a process goes to its child. Returns false when the ring is full. */
static __always_inline bool follow(const struct process_state *state, const struct task_struct *child,
                                   bool sharing)
{
    struct process_state copy = *state;
    __u32 tgid = (__u32)child->tgid;

    if (!follow_children)
        __builtin_memset(&copy, 0, sizeof(copy));
    copy.flags = (copy.flags & ~(__u32)PROCESS_SHARES_SLOTS) | (sharing ? PROCESS_SHARES_SLOTS : 0);
    if (copy.flags & PROCESS_INLINE)
        copy.flags |= PROCESS_SHARES_AREA;
    if (copy.flags & PROCESS_CAN_LOAD) /* the child's linker is not watched, at first or at all */
        copy.flags |= PROCESS_CHECK_CALLERS;
    if (!bpf_map_update_elem(&processes, &tgid, &copy, BPF_ANY))
        return true;
    __sync_fetch_and_add(&totals.processes, 1);
    return false;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
    bool is_process = child->tgid != parent->tgid, followed = !is_process || follow_children;
    struct process_state *state = process_of(parent);
    bool stopped = false, sharing, shares;
    struct wire_fork *record;

    inherit_area(parent, child);
    if (!state || !followed)
        check_rights_of_child(parent, child, false);
    if (!state)
        return 0;
    shares = state->flags & PROCESS_INLINE && shares_block(child);
    sharing = !shares && state->flags & PROCESS_INLINE && shares_slots(parent, child);
    if (is_process && (followed || sharing) && !follow(state, child, sharing))
        return 0;
    if (is_process && state->flags & PROCESS_INLINE)
        state->flags |= PROCESS_SHARES_AREA;
    if (sharing)
        report_slots_shared(parent, child, follow_children);
    if (!followed && !shares)
        return 0;
    if (is_process && followed)
        stopped = hold_child(child, state);
    if (shares && !stopped)
        stopped = hold_sharer(parent, child);
    processes_changed();
    flush_current(parent);
    record = reserve_life_cycle(sizeof(*record), WIRE_FORK, (__u32)child->pid);
    if (!record)
        return 0;
    record->header.flags = stopped ? WIRE_HELD : 0;
    record->tgid = (__u32)child->tgid;
    record->parent_tid = (__u32)parent->pid;
    record->parent_tgid = (__u32)parent->tgid;
    record->shares = (task_to_read(child)->mm == task_to_read(parent)->mm ? FORK_SHARES_MEMORY : 0) |
                     (shares ? FORK_SHARES_BLOCK : 0) | (followed ? 0 : FORK_IS_LEFT);
    record->thread_block = thread_block_of(child);
    record->own_tid = record->unused = 0;
    bpf_ringbuf_submit(record, stopped ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
    if (is_process && followed)
        check_rights_of_child(parent, child, stopped);
    return 0;
}

/* What is known about the old program's stack and code means nothing in the new one. */
static __always_inline void forget_program(struct process_state *state, __u32 tgid)
{
    state->flags = PROCESS_TRACED | PROCESS_STARTING; /* and without inline probes */
    processes_changed();
    bpf_map_delete_elem(&shadows, &tgid);
    bpf_map_delete_elem(&stacks, &tgid);
    bpf_map_delete_elem(&callbacks, &tgid);
    bpf_map_delete_elem(&trigger_windows, &tgid);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_tid)
{
    struct process_state *state = process_of(task);
    __u32 tgid = (__u32)task->tgid;
    struct wire_exec *record;
    bool stopped;
    __u8 left;

    leave_area(task);
    if (!state)
        return 0;
    left = leave_slot_of((__u32)old_tid);
    forget_program(state, tgid);
    stopped = hold(task);
    if (!stopped) /* it runs before its mappings are known */
        state->flags |= PROCESS_CHECK_CALLERS;
    record = reserve_life_cycle(sizeof(*record), WIRE_EXEC, tgid);
    if (!record)
        return 0;
    record->header.flags = left | (stopped ? WIRE_HELD : 0);
    record->old_tid = (__u32)old_tid;
    record->unused = 0;
    bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
    return 0;
}

#define SIGNAL_GROUP_EXIT 4 /* signal_struct.flags: the exit code is the group's */

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_task_exit, struct task_struct *task)
{
    __u32 tgid = (__u32)task->tgid, tid = (__u32)task->pid;
    bool last = task_to_read(task)->signal->live.counter == 0;
    struct wire_exit *record;
    __u8 left;

    if (last)
        leave_area(task);
    if (process_of(task))
        on_release(task);
    if (!process_of(task)) {
        leave_slot_of(tid);
        return 0;
    }
    if (last) {
        bpf_map_delete_elem(&processes, &tgid);
        bpf_map_delete_elem(&held, &tgid);
    }
    processes_changed();
    report_loss(tid);
    left = leave_slot_of(tid);
    if (last)
        left |= leave_slots_of(tgid);
    bpf_map_delete_elem(&stacks, &tid);
    bpf_map_delete_elem(&shadows, &tid);
    bpf_map_delete_elem(&callbacks, &tid);
    bpf_map_delete_elem(&trigger_windows, &tid);
    record = reserve_life_cycle(sizeof(*record), WIRE_EXIT, tid);
    if (!record)
        return 0;
    record->header.flags = left | (last ? WIRE_LAST_THREAD : 0);
    record->tgid = tgid;
    if (last && task_to_read(task)->signal->flags & SIGNAL_GROUP_EXIT)
        record->exit_code = (__u32)task_to_read(task)->signal->group_exit_code;
    else if (last)
        record->exit_code = (__u32)task_to_read(task)->group_leader->exit_code;
    else
        record->exit_code = (__u32)task->exit_code;
    __builtin_memcpy(record->comm, task->comm, sizeof(record->comm));
    bpf_ringbuf_submit(record, last ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
    return 0;
}

#endif
