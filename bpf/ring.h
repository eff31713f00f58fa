/* SPDX-License-Identifier: GPL-2.0-only */
/* The ring buffers. */
#ifndef TRACECTL_BPF_RING_H
#define TRACECTL_BPF_RING_H

#include "bpf/limits.h"
#include "bpf/wire.h"

/* Read by the collector. */
struct {
    __u64 unplaced;   /* records lost for threads that did not fit into `losses` */
    __u64 life_cycle; /* life-cycle records lost */
    __u64 processes;  /* children not followed because `processes` was full */
} totals;

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 25);
} ring SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 20);
} overflow SEC(".maps");

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
