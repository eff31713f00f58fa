/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The dynamic linker calls _dl_debug_state() when it has mapped or unmapped libraries, and before it runs any
 * of their code: it is there for debuggers, and so for us. A process that is watched waits there until its
 * new libraries have their probes.
 *
 * How it waits: a program that has just been started is stopped, as at its exec. Later, a stop would be seen
 * by all its threads (epoll_wait and others return EINTR after one) and by its parent: then only the thread
 * that loads the library waits, here, for at most LIBRARY_WAIT_NS.
 */
#ifndef TRACECTL_BPF_LIBRARIES_H
#define TRACECTL_BPF_LIBRARIES_H

#include "bpf/lifecycle.h"

/* The collector deletes the entry to let the thread go; a thread that has waited too long deletes it itself,
 * so that the collector sees that it came too late. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, MAX_WAITING);
    __type(key, __u32); /* tid */
    __type(value, __u32);
} waiting SEC(".maps");

struct wait {
    __u64 until;
    __u32 tid;
};

static long wait_a_little(__u64 turn, void *context)
{
    struct wait *wait = context;

    return !bpf_map_lookup_elem(&waiting, &wait->tid) || bpf_ktime_get_ns() > wait->until;
}

#define TURNS (1u << 23) /* the most that bpf_loop takes; each takes some 50 ns */

static __always_inline void wait_until_let_go(__u32 tid)
{
    struct wait wait = {.until = bpf_ktime_get_ns() + LIBRARY_WAIT_NS, .tid = tid};

    bpf_loop(TURNS, wait_a_little, &wait, 0);
    bpf_map_delete_elem(&waiting, &tid);
}

SEC("uprobe.multi")
int on_libraries(struct pt_regs *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct process_state *state = process_of(task);
    struct wire_libraries *record;
    __u32 tid = (__u32)task->pid, one = 1;
    __u8 how = 0;

    if (closed || !state || !(state->flags & PROCESS_WATCHED))
        return 0;
    if (state->flags & PROCESS_STARTING && hold(task))
        how = WIRE_HELD;
    else if (!bpf_map_update_elem(&waiting, &tid, &one, BPF_ANY))
        how = WIRE_WAITING;
    record = reserve_life_cycle(sizeof(*record), WIRE_LIBRARIES, tid);
    if (!record) {
        bpf_map_delete_elem(&waiting, &tid);
        return 0;
    }
    record->header.flags = how;
    record->tgid = (__u32)task->tgid;
    record->unused = 0;
    bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
    if (how == WIRE_WAITING)
        wait_until_let_go(tid);
    return 0;
}

#endif
