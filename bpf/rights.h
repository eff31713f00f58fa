/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A process with inline probes shares the memory that they write to with its parent and its children. It must
 * not once its rights differ from theirs: its code may then belong to a user who could not harm them
 * otherwise. So the functions of the C library that change rights are probed, and report to the collector
 * before they do anything; the process is stopped until it has memory of its own. Until its next fork it
 * needs no other.
 */
#ifndef TRACECTL_BPF_RIGHTS_H
#define TRACECTL_BPF_RIGHTS_H

#include "bpf/lifecycle.h"

/* A child by vfork has all of its parent's memory, whatever its rights: it has been trusted with that. */
SEC("uprobe.multi")
int on_rights(struct pt_regs *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct process_state *state = process_of(task);
    struct wire_rights *record;
    bool stopped;

    (void)ctx;
    if (!state || !(state->flags & PROCESS_INLINE) || !(state->flags & PROCESS_SHARES_AREA) ||
        state->flags & PROCESS_SHARES_SLOTS)
        return 0;
    stopped = hold(task);
    record = reserve_life_cycle(sizeof(*record), WIRE_RIGHTS, (__u32)task->pid);
    if (!record)
        return 0;
    state->flags &= ~(__u32)PROCESS_SHARES_AREA;
    record->header.flags = stopped ? WIRE_HELD : 0;
    record->tgid = (__u32)task->tgid;
    record->unused = 0;
    bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
    return 0;
}

#endif
