/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls of one thread that are recorded by inline probes go another way than those that uprobes record. Their
 * order is kept by saying, before each of the latter, how far the thread has come with the former: its cursor
 * (collector/agent/record.h), which lies in its thread control block beside the id of the thread that it is
 * of.
 */
#ifndef TRACECTL_BPF_INLINE_H
#define TRACECTL_BPF_INLINE_H

#include "bpf/processes.h"
#include "bpf/ring.h"

#define INLINE_SLOTS 0x80 /* AGENT_CURSOR, and AGENT_OWNER behind it */

struct inline_slots {
    __u64 cursor;
    __u32 owner, unused;
};

/* Returns false when there is no room to say it: then what comes next must not be said either. */
static __always_inline bool tell_inline_place(const struct hit *hit)
{
    struct inline_slots slots;
    struct wire_inline *record;

    if (!(hit->flags & PROCESS_INLINE))
        return true;
    if (bpf_probe_read_user(&slots, sizeof(slots), (const void *)(hit->task->thread.fsbase + INLINE_SLOTS)) ||
        slots.owner != hit->tid)
        slots.cursor = 0;
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
    record->cursor = slots.cursor;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    return true;
}

#endif
