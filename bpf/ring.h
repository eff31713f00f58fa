/* SPDX-License-Identifier: GPL-2.0-only */
/* The ring buffers, and what is known about records that found no room. */
#ifndef TRACECTL_BPF_RING_H
#define TRACECTL_BPF_RING_H

#include "bpf/limits.h"
#include "bpf/wire.h"

/* Read by the collector. */
struct {
    __u64 unplaced;   /* records lost for threads that `losses` had no room for */
    __u64 life_cycle; /* life-cycle records lost */
    __u64 processes;  /* children not followed because `processes` was full */
} totals;

/* Threads with an entry in `losses`: while it is 0 nobody looks there. */
__u64 losing_threads;

struct loss {
    __u32 calls;
    __u32 returns;
    __u32 go;
    __u32 sync;
};

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 25);
} ring SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 20);
} overflow SEC(".maps");

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

/* Counts a record of thread `tid` that found no room. */
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

/* Puts a WIRE_LOST before the thread's next record if it has losses to report. Returns false when there is
 * still no room: then the next record must not be written either, or the loss would be misplaced. */
static __always_inline bool report_loss(__u32 tid)
{
    struct wire_lost *record;
    struct loss *loss;

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

/* Reserves a life-cycle record and fills its header; the caller fills the rest and submits it. */
static __always_inline void *reserve_life_cycle(__u64 size, __u8 kind, __u32 tid)
{
    struct wire_header *header = bpf_ringbuf_reserve(&ring, size, 0);

    if (!header)
        header = bpf_ringbuf_reserve(&overflow, size, 0);
    if (!header) {
        __sync_fetch_and_add(&totals.life_cycle, 1);
        return 0;
    }
    header->kind = kind;
    header->flags = 0;
    header->sp_high = 0;
    header->tid = tid;
    header->ns = bpf_ktime_get_ns();
    return header;
}

#endif
