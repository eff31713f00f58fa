/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A process with inline probes shares the memory that they write to with its parent and its children. It must
 * not once its rights differ from theirs: its code may then belong to a user who could not harm them
 * otherwise. So it is reported to the collector before its rights change, and stopped until it has memory of
 * its own: where it calls a function of the C library for it, and, whatever makes the system call, where the
 * kernel asks whether it may (Linux 6.14). A child that is made with a user namespace of its own is reported
 * as it is made. Until its next fork a process needs no other memory.
 *
 * The collector looks for the rest once a second: unshare(CLONE_NEWUSER) without the C library, older kernels.
 */
#ifndef TRACECTL_BPF_RIGHTS_H
#define TRACECTL_BPF_RIGHTS_H

#include "bpf/areas.h"
#include "bpf/hold.h"
#include "bpf/processes.h"
#include "bpf/ring.h"

/* Values of the kernel's user-space interface (include/uapi/linux/capability.h). */
enum { CAP_SETGID = 6, CAP_SETUID = 7, CAP_SETPCAP = 8, CAP_SYS_ADMIN = 21 };

/* Of a process that is not followed there is no state: each of its changes is reported. A child by vfork has
 * all of its parent's memory, whatever its rights: it has been trusted with that. */
static __always_inline bool shares_area(const struct process_state *state, __u32 tgid)
{
    if (!state)
        return bpf_map_lookup_elem(&areas, &tgid);
    return state->flags & PROCESS_INLINE && state->flags & PROCESS_SHARES_AREA &&
           !(state->flags & PROCESS_SHARES_SLOTS);
}

static __always_inline void report_rights(const struct task_struct *task, struct process_state *state,
                                          bool stopped)
{
    struct wire_rights *record = reserve_life_cycle(sizeof(*record), WIRE_RIGHTS, (__u32)task->pid);

    if (!record)
        return;
    if (state)
        state->flags &= ~(__u32)PROCESS_SHARES_AREA;
    record->header.flags = stopped ? WIRE_HELD : 0;
    record->tgid = (__u32)task->tgid;
    record->unused = 0;
    bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
}

static __always_inline void change_rights(struct task_struct *task)
{
    struct process_state *state = process_of(task);

    if (shares_area(state, (__u32)task->tgid))
        report_rights(task, state, hold(task));
}

SEC("uprobe.multi")
int on_rights(struct pt_regs *ctx)
{
    (void)ctx;
    change_rights(bpf_get_current_task_btf());
    return 0;
}

/* The kernel asks for these before it changes users, groups or capabilities; and for any in a user namespace
 * below its own before a process enters that. Others are asked for at many more occasions. */
SEC("tp_btf/cap_capable")
int BPF_PROG(on_capability, const struct cred *cred, struct user_namespace *target,
             const struct user_namespace *capable, int capability, int result)
{
    struct task_struct *task;

    (void)cred, (void)capable, (void)result;
    if (capability != CAP_SETUID && capability != CAP_SETGID && capability != CAP_SETPCAP &&
        capability != CAP_SYS_ADMIN)
        return 0;
    task = bpf_get_current_task_btf();
    if (capability != CAP_SYS_ADMIN || target->level > task_to_read(task)->cred->user_ns->level)
        change_rights(task);
    return 0;
}

/* `stopped`: the child is already, and another record says so. */
static __always_inline void check_rights_of_child(const struct task_struct *parent, struct task_struct *child,
                                                  bool stopped)
{
    __u32 tgid = (__u32)child->tgid;
    struct process_state *state = process_of(child);

    if (task_to_read(child)->cred->user_ns != task_to_read(parent)->cred->user_ns &&
        task_to_read(child)->mm != task_to_read(parent)->mm && shares_area(state, tgid))
        report_rights(child, state, !stopped && hold_newborn(child));
}

#endif
