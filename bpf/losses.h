/* SPDX-License-Identifier: GPL-2.0-only */
/* What is known about records that did not fit into the ring. */
#ifndef TRACECTL_BPF_LOSSES_H
#define TRACECTL_BPF_LOSSES_H

#include "bpf/limits.h"
#include "bpf/ring.h"
#include "bpf/slots.h"
#include "bpf/wire.h"

/* Threads with an entry in `losses`: while it is 0 the map is not read. */
__u64 losing_threads;

struct loss {
    __u32 calls;
    __u32 returns;
    __u32 go;
    __u32 sync;
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, MAX_LOSING_THREADS);
    __type(key, __u32); /* tid */
    __type(value, struct loss);
} losses SEC(".maps");

/* Adds to what thread `tid` has lost. */
static __always_inline void add_loss(__u32 tid, struct loss more)
{
    struct loss *loss = bpf_map_lookup_elem(&losses, &tid);

    if (loss) { /* only the thread itself writes its entry */
        loss->calls += more.calls;
        loss->returns += more.returns;
        loss->go += more.go;
        loss->sync += more.sync;
        return;
    }
    if (bpf_map_update_elem(&losses, &tid, &more, BPF_ANY))
        __sync_fetch_and_add(&totals.unplaced, 1);
    else
        __sync_fetch_and_add(&losing_threads, 1);
}

/* Counts a record of thread `tid` that did not fit. */
static __always_inline void count_loss(__u32 tid, bool is_return)
{
    add_loss(tid, (struct loss){.calls = !is_return, .returns = is_return});
}

/* The same of a struct wire_go. */
static __always_inline void count_go_loss(__u32 tid)
{
    add_loss(tid, (struct loss){.go = 1});
}

/* The same of a struct wire_sync. */
static __always_inline void count_sync_loss(__u32 tid)
{
    add_loss(tid, (struct loss){.sync = 1});
}

static __always_inline bool has_losses(__u32 tid)
{
    return losing_threads && bpf_map_lookup_elem(&losses, &tid);
}

/* Puts what comes before the thread's next record into the ring: what its slot holds, and a WIRE_LOST if it
 * has losses to report. Returns false when the ring is still full: then the next record must not be written
 * either, or it would be misplaced. */
static __always_inline bool report_loss(__u32 tid)
{
    struct wire_lost *record;
    struct loss *loss;

    if (packs && !flush_thread(tid))
        return false;
    if (!losing_threads)
        return true;
    loss = bpf_map_lookup_elem(&losses, &tid);
    if (!loss)
        return true;
    record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (!record)
        return false;
    record->header.kind = WIRE_LOST;
    record->header.flags = 0;
    record->header.sp_high = 0;
    record->header.tid = tid;
    record->header.ns = bpf_ktime_get_ns();
    record->calls = loss->calls;
    record->returns = loss->returns;
    record->go = loss->go;
    record->sync = loss->sync;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    bpf_map_delete_elem(&losses, &tid);
    __sync_fetch_and_add(&losing_threads, -1);
    return true;
}

#endif
