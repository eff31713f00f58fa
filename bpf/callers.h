/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls that an exception may pass through although their own image throws none: those made by a callback out
 * of an image that can throw, and all calls inside them. A return probe would abort the program there.
 *
 * Only processes that have such an image mapped pay for the question (PROCESS_CHECK_CALLERS): a call from
 * anywhere but the ranges that cannot throw is taken for such a callback.
 */
#ifndef TRACECTL_BPF_CALLERS_H
#define TRACECTL_BPF_CALLERS_H

#include "bpf/limits.h"
#include "bpf/processes.h"
#include "bpf/return_address.h"

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, MAX_CALLBACKS);
    __type(key, __u32);   /* tid */
    __type(value, __u64); /* entry stack pointer of the outermost callback that is open */
} callbacks SEC(".maps");

static __always_inline bool cannot_throw(const struct process_state *process, __u64 address)
{
    for (int i = 0; i < PROCESS_RANGES; i++)
        if (address - process->cannot_throw[i].start <
            process->cannot_throw[i].end - process->cannot_throw[i].start)
            return true;
    return false;
}

/* Whether an exception may pass through the call whose return address lies at `sp`, on the thread's own
 * stack. */
static __always_inline bool may_be_unwound(const struct hit *hit, __u64 sp)
{
    struct process_state *process = process_of(hit->task);
    __u64 *open = bpf_map_lookup_elem(&callbacks, &hit->tid), return_address;

    if (open && sp < *open)
        return true;
    return_address = return_address_at(hit->task, sp);
    if (process && cannot_throw(process, return_address)) {
        if (open)
            bpf_map_delete_elem(&callbacks, &hit->tid);
        return false;
    }
    bpf_map_update_elem(&callbacks, &hit->tid, &sp, BPF_ANY);
    return true;
}

#endif
