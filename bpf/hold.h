/* SPDX-License-Identifier: GPL-2.0-only */
/* Processes that are stopped until the collector has done something for them. */
#ifndef TRACECTL_BPF_HOLD_H
#define TRACECTL_BPF_HOLD_H

#include "bpf/kernel_compat.h"
#include "bpf/processes.h"

/* Stopped after an exec, or while new libraries are probed, until the collector lets go: since when
 * (CLOCK_MONOTONIC). The guard lets go what has stood too long, whatever the collector does. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, MAX_PROCESSES);
    __type(key, __u32); /* tgid */
    __type(value, __u64);
} held SEC(".maps");

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
    const struct task_struct *self = task_to_read(task);
    struct pid **own = self->signal->pids, **parents = self->real_parent->signal->pids;

    return (self->ptrace && (__u32)self->parent->tgid != holder) ||
           (own[PIDTYPE_PGID] != parents[PIDTYPE_PGID] && own[PIDTYPE_SID] == parents[PIDTYPE_SID]);
}

/* Stops the current process if that is harmless and if it is on the list then: a stopped process must be
 * found again. */
static __always_inline bool hold_in_any_phase(struct task_struct *task)
{
    __u64 since = bpf_ktime_get_ns();
    __u32 tgid = (__u32)task->tgid;

    if (!may_hold && (__u32)task_to_read(task)->real_parent->tgid != collector)
        return false;
    if (!can_continue_all && task_to_read(task)->cred->uid.val != collector_user)
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

/* Stops the process of another task, if it is on the list then and can be continued. */
static __always_inline bool hold_other(struct task_struct *task)
{
    __u64 since = bpf_ktime_get_ns();
    __u32 tgid = (__u32)task->tgid;

    if (phase != PHASE_RECORDING || !bpf_ksym_exists(bpf_send_signal_task) ||
        (!can_continue_all && task_to_read(task)->cred->uid.val != collector_user) ||
        bpf_map_update_elem(&held, &tgid, &since, BPF_ANY))
        return false;
    if (!bpf_send_signal_task(task, SIGSTOP, PIDTYPE_TGID, 0))
        return true;
    bpf_map_delete_elem(&held, &tgid);
    return false;
}

/* Stops a child that has not run yet. One with a terminal is not stopped: it is unknown yet whether it will be
 * a job. */
static __always_inline bool hold_newborn(struct task_struct *child)
{
    return may_hold && !task_to_read(child)->signal->tty && hold_other(child);
}

/* The same so that it can be given probes. */
static __always_inline bool hold_child(struct task_struct *child, const struct process_state *state)
{
    return state->flags & PROCESS_OWN_PROBES && hold_newborn(child);
}

/* The same with a thread that works on its maker's slots: its process, until the block is marked. */
static __always_inline bool hold_sharer(struct task_struct *parent, struct task_struct *child)
{
    bool may = may_hold || (__u32)parent->real_parent->tgid == collector;

    return may && !is_job(parent) && hold_other(child);
}

#endif
