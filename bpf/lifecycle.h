/* SPDX-License-Identifier: GPL-2.0-only */
/* The life of the traced processes. */
#ifndef TRACECTL_BPF_LIFECYCLE_H
#define TRACECTL_BPF_LIFECYCLE_H

#include "bpf/arch.h"
#include "bpf/areas.h"
#include "bpf/callers.h"
#include "bpf/inline.h"
#include "bpf/losses.h"
#include "bpf/own_stack.h"
#include "bpf/processes.h"
#include "bpf/ring.h"
#include "bpf/shadow.h"
#include "bpf/trigger.h"

/* Stopped after an exec, or while new libraries are probed, until the collector lets go: since when
 * (CLOCK_MONOTONIC). The guard lets go what has stood too long, whatever the collector does. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, MAX_PROCESSES);
    __type(key, __u32); /* tgid */
    __type(value, __u64);
} held SEC(".maps");

const volatile bool follow_children = true;
const volatile bool may_hold = true; /* programs and children may be stopped for a moment */
volatile __u32 holder;               /* the process that traces the targets, if any: its doing is ours */
const volatile __u32 collector;      /* its process: it does not mind when its own child is stopped */
const volatile bool can_continue_all = true; /* it may continue processes of other users than its own */
const volatile __u32 collector_user;

#define SIGSTOP 19

/* Whether another program would see the stop and take it for something else: a debugger that started the
 * program, or a shell with job control, which gives each job a process group of its own in its own session.
 */
static __always_inline bool is_job(struct task_struct *task)
{
    struct pid **own = task->signal->pids, **parents = task->real_parent->signal->pids;

    return (task->ptrace && (__u32)task->parent->tgid != holder) ||
           (own[PIDTYPE_PGID] != parents[PIDTYPE_PGID] && own[PIDTYPE_SID] == parents[PIDTYPE_SID]);
}

/* Stops the current process if that is harmless and if it is on the list then: a stopped process must be
 * found again. */
static __always_inline bool hold_in_any_phase(struct task_struct *task)
{
    __u64 since = bpf_ktime_get_ns();
    __u32 tgid = (__u32)task->tgid;

    if (!may_hold && (__u32)task->real_parent->tgid != collector)
        return false;
    if (!can_continue_all && task->cred->uid.val != collector_user)
        return false;
    if (is_job(task) || bpf_map_update_elem(&held, &tgid, &since, BPF_ANY))
        return false;
    bpf_send_signal(SIGSTOP);
    return true;
}

/* The same while the collector reads records; otherwise it would stand for long. */
static __always_inline bool hold(struct task_struct *task)
{
    return phase == PHASE_RECORDING && hold_in_any_phase(task);
}

/* Stops a child that has not run yet, so that it can be given probes. One with a terminal is not stopped:
 * it is unknown yet whether it will be a job. */
static __always_inline bool hold_child(struct task_struct *child, const struct process_state *state)
{
    __u64 since = bpf_ktime_get_ns();
    __u32 tgid = (__u32)child->tgid;

    if (phase != PHASE_RECORDING || !may_hold || !(state->flags & PROCESS_OWN_PROBES) ||
        !bpf_ksym_exists(bpf_send_signal_task) || child->signal->tty ||
        (!can_continue_all && child->cred->uid.val != collector_user) ||
        bpf_map_update_elem(&held, &tgid, &since, BPF_ANY))
        return false;
    if (!bpf_send_signal_task(child, SIGSTOP, PIDTYPE_TGID, 0))
        return true;
    bpf_map_delete_elem(&held, &tgid);
    return false;
}

/* The same with a thread that works on its maker's slots: its process, until the block is marked. */
static __always_inline bool hold_sharer(struct task_struct *parent, struct task_struct *child)
{
    __u64 since = bpf_ktime_get_ns();
    __u32 tgid = (__u32)child->tgid;
    bool may = may_hold || (__u32)parent->real_parent->tgid == collector;

    if (phase != PHASE_RECORDING || !may || is_job(parent) || !bpf_ksym_exists(bpf_send_signal_task) ||
        (!can_continue_all && child->cred->uid.val != collector_user) ||
        bpf_map_update_elem(&held, &tgid, &since, BPF_ANY))
        return false;
    if (!bpf_send_signal_task(child, SIGSTOP, PIDTYPE_TGID, 0))
        return true;
    bpf_map_delete_elem(&held, &tgid);
    return false;
}

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
    record->shares = (child->mm == parent->mm ? FORK_SHARES_MEMORY : 0) | (shares ? FORK_SHARES_BLOCK : 0) |
                     (followed ? 0 : FORK_IS_LEFT);
    record->thread_block = thread_block_of(child);
    bpf_ringbuf_submit(record, stopped ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
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
    bool last = task->signal->live.counter == 0;
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
    if (last && task->signal->flags & SIGNAL_GROUP_EXIT)
        record->exit_code = (__u32)task->signal->group_exit_code;
    else if (last)
        record->exit_code = (__u32)task->group_leader->exit_code;
    else
        record->exit_code = (__u32)task->exit_code;
    __builtin_memcpy(record->comm, task->comm, sizeof(record->comm));
    bpf_ringbuf_submit(record, last ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
    return 0;
}

#endif
