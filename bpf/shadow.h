/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The innermost calls of a thread whose returns are not probed, with the return address that each found in
 * its slot on the stack. When another call comes from deeper down and a slot holds something else by now,
 * that call has returned: this is how a callback out of a library is told from a call inside the last one. A
 * slot that still holds its address proves nothing.
 */
#ifndef TRACECTL_BPF_SHADOW_H
#define TRACECTL_BPF_SHADOW_H

#include "bpf/limits.h"
#include "bpf/return_address.h"

#define SHADOW_DEPTH 8 /* a power of two */
/* A frame further away lies on another stack: it says nothing about this one. */
#define SHADOW_REACH (8 << 20)

struct shadow {
    __u32 next;  /* where the next frame goes, modulo SHADOW_DEPTH */
    __u32 count; /* frames that are known, at most SHADOW_DEPTH */
    struct {
        __u64 sp, return_address;
    } frames[SHADOW_DEPTH];
};

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, MAX_THREAD_STACKS);
    __type(key, __u32); /* tid */
    __type(value, struct shadow);
} shadows SEC(".maps");

/* Drops the frames that are gone; returns the highest entry stack pointer among those that a slot gave away.
 */
static __always_inline __u64 drop_gone(struct task_struct *task, struct shadow *shadow, __u64 sp)
{
    __u64 gone = 0, slot;

    for (int i = 0; i < SHADOW_DEPTH && shadow->count; i++) {
        __u32 top = (shadow->next - 1) & (SHADOW_DEPTH - 1);

        if (shadow->frames[top].sp > sp && shadow->frames[top].sp - sp < SHADOW_REACH) {
            slot = return_address_at(task, shadow->frames[top].sp);
            if (!slot || !shadow->frames[top].return_address || slot == shadow->frames[top].return_address)
                break;
            gone = shadow->frames[top].sp;
        }
        shadow->next--;
        shadow->count--;
    }
    return gone;
}

/* Not on the stack, which is of 512 bytes for a program and all that it calls. */
static const struct shadow empty_shadow;

/* The shadow of a thread without a slot; made when there is something to `keep`. NULL: there is none. */
static __always_inline struct shadow *shadow_of(__u32 tid, bool keep)
{
    struct shadow *shadow = bpf_map_lookup_elem(&shadows, &tid);

    if (shadow || !keep || bpf_map_update_elem(&shadows, &tid, &empty_shadow, BPF_ANY))
        return shadow;
    return bpf_map_lookup_elem(&shadows, &tid);
}

/* `keep`: the call is on an ordinary stack and its return is not probed. (A return probe overwrites the slot
 * itself.) */
static __always_inline __u64 update_shadow(struct task_struct *task, struct shadow *shadow, __u64 sp,
                                           __u64 return_address, bool keep)
{
    __u64 gone = drop_gone(task, shadow, sp);

    if (keep) {
        __u32 top = shadow->next & (SHADOW_DEPTH - 1);

        shadow->frames[top].sp = sp;
        shadow->frames[top].return_address = return_address;
        shadow->next++;
        if (shadow->count < SHADOW_DEPTH)
            shadow->count++;
    }
    return gone;
}

#endif
