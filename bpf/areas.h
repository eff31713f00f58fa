/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which processes have the memory that inline probes write to (an area), by the area's number. The collector
 * gives it to a process, all that it forks inherit it, whether they are recorded or not, and an exec or the
 * end takes it away. What a process says of its area is not believed: it could name another user's.
 */
#ifndef TRACECTL_BPF_AREAS_H
#define TRACECTL_BPF_AREAS_H

#include "bpf/arch.h"
#include "bpf/limits.h"
#include "bpf/watched_calls.h"

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, MAX_PROCESSES);
    __type(key, __u32); /* tgid */
    __type(value, __u32);
} areas SEC(".maps");

/* Areas of which threads must not wait for the collector, by their numbers; nobody waits in those with larger
 * ones. Targets have it mapped for reading, and the kernel lets nobody make such a mapping writable
 * (bpf_map_mmap()). A mark is not taken back while a process has the area: what one process may not do its
 * children may not. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, AREAS_THAT_WAIT);
    __type(key, __u32);
    __type(value, __u64);
} filtered SEC(".maps");

static __always_inline void forbid_waiting(__u32 area)
{
    __u64 *mark = bpf_map_lookup_elem(&filtered, &area);

    if (mark)
        *mark = 1;
}

/* A child that finds no place in the table could not say later that it must not wait, and nor could its own
 * children: from now on nobody waits there. */
static __always_inline void inherit_area(const struct task_struct *parent, const struct task_struct *child)
{
    __u32 from = (__u32)parent->tgid, to = (__u32)child->tgid;
    __u32 *area = bpf_map_lookup_elem(&areas, &from);

    if (area && from != to && bpf_map_update_elem(&areas, &to, area, BPF_ANY))
        forbid_waiting(*area);
}

static __always_inline void leave_area(const struct task_struct *task)
{
    __u32 tgid = (__u32)task->tgid;

    bpf_map_delete_elem(&areas, &tgid);
}

/* A thread is about to wait for the collector, by a system call: in the agent. */
SEC("uprobe.multi")
int on_ask(struct pt_regs *ctx)
{
    const struct task_struct *task = bpf_get_current_task_btf();
    __u32 tgid = (__u32)task->tgid;
    __u32 *area = bpf_map_lookup_elem(&areas, &tgid);

    (void)ctx;
    if (area && must_not_wait(task))
        forbid_waiting(*area);
    return 0;
}

#endif
