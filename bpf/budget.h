/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What calls may cost, from the first hit on, long before the collector can take a probe away.
 *
 * Each CPU has a bucket, filled with a share of the time that passes and emptied by what recorded calls cost.
 * When it is empty a function that has been recorded BUDGET_RARE times in this tick waits for the next one;
 * and none takes more than its own limit, so that some of the bucket is left to others. Rare calls always go
 * through. What is not recorded is counted, and announced in the ring before the first one: the collector
 * must know that calls behind it may be inside ones that were not recorded.
 *
 * The races between CPUs, or with a program that is preempted, only blur the limits; the counts are exact.
 *
 * When the collector moves probes from one link to another, both are on the same places for some time, and
 * each hit runs the program twice, the newer link first (the kernel puts a new consumer in front:
 * consumer_add in kernel/events/uprobes.c). A link's probes carry a tag, and the slot says whose turn it is:
 * the newer one does nothing before that, the older one does what the newer one has not done in the same hit,
 * which is what `relinked` remembers for each thread. So no call is missed and none is recorded twice.
 */
#ifndef TRACECTL_BPF_BUDGET_H
#define TRACECTL_BPF_BUDGET_H

#include "bpf/limits.h"
#include "bpf/losses.h"
#include "bpf/processes.h"
#include "bpf/ring.h"
#include "bpf/wire.h"

/* What a CPU may spend in a tick; 0: there is no budget. */
__u32 budget_ns;

/* Hits are counted, and none is recorded: what `tracectl top` looks at. */
__u32 count_only;

/* Some places have more than one link at present. */
__u32 relinking;

#define BUDGET_RARE 4  /* calls of a function in a tick that are recorded whatever they cost */
#define BUDGET_BURST 8 /* ticks that a CPU may save up, or owe */

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, MAX_BUDGET_PROBES);
    __type(key, __u32); /* index of the probe */
    __type(value, struct budget_slot);
} budget_slots SEC(".maps");

struct budget_bucket {
    __u64 tick;
    __s64 left_ns;
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct budget_bucket);
} budget_buckets SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, MAX_THREAD_STACKS);
    __type(key, __u32);   /* tid */
    __type(value, __u64); /* tag of the link that dealt with a hit last; index */
} relinked SEC(".maps");

/* Whether a newer link's program has dealt with the hit. */
static __always_inline bool is_done(__u32 tid, __u32 index, __u8 tag)
{
    __u64 *done = bpf_map_lookup_elem(&relinked, &tid);

    return done && (__u32)*done == index && (__s8)((__u8)(*done >> 32) - tag) > 0;
}

static __always_inline bool has_turn(const struct budget_slot *slot, __u32 tid, __u32 index, __u64 cookie)
{
    __u8 tag = COOKIE_TAG(cookie);
    __s8 age = (__s8)(tag - slot->tag);
    __u64 what = (__u64)tag << 32 | index;

    if (age > 0 || (age < 0 && is_done(tid, index, tag)))
        return false;
    if (age < 0 || relinking)
        bpf_map_update_elem(&relinked, &tid, &what, BPF_ANY);
    return true;
}

static __always_inline void fill_bucket(struct budget_bucket *bucket, __u64 tick)
{
    const __s64 most = (__s64)BUDGET_BURST * budget_ns;
    __u64 passed = tick - bucket->tick;

    if (!passed)
        return;
    bucket->tick = tick;
    bucket->left_ns += (__s64)((passed > 2 * BUDGET_BURST ? 2 * BUDGET_BURST : passed) * budget_ns);
    if (bucket->left_ns > most)
        bucket->left_ns = most;
}

static __always_inline bool can_afford(struct budget_slot *slot)
{
    __u64 tick = bpf_jiffies64(), window = slot->window;
    __u32 zero = 0, used = (__u32)(window >> 32) == (__u32)tick ? (__u32)window : 0;
    struct budget_bucket *bucket = bpf_map_lookup_elem(&budget_buckets, &zero);

    if (!bucket)
        return true;
    fill_bucket(bucket, tick);
    if (used >= BUDGET_RARE &&
        (bucket->left_ns < (__s64)slot->cost_ns || (slot->limit && used >= slot->limit)))
        return false;
    slot->window = tick << 32 | (used + 1);
    bucket->left_ns -= slot->cost_ns;
    if (bucket->left_ns < -(__s64)BUDGET_BURST * budget_ns)
        bucket->left_ns = -(__s64)BUDGET_BURST * budget_ns;
    return true;
}

static __always_inline bool report_over_budget(struct budget_slot *slot, __u32 tid, __u32 index)
{
    struct wire_over_budget *record;

    if (slot->reported)
        return true;
    if (packs && !flush_thread(tid))
        return false;
    record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (!record)
        return false;
    record->header.kind = WIRE_OVER_BUDGET;
    record->header.flags = 0;
    record->header.sp_high = 0;
    record->header.tid = tid;
    record->header.ns = bpf_ktime_get_ns();
    record->function = index;
    record->unused = 0;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    slot->reported = 1; /* not before the record stands in the ring */
    return true;
}

/* Counts a call that is not recorded: as a loss of the thread when the ring is too full to announce it. */
static __always_inline void leave_out(struct budget_slot *slot, __u32 tid, __u32 index)
{
    if (report_over_budget(slot, tid, index))
        __sync_fetch_and_add(&slot->missed, 1);
    else
        count_loss(tid, false);
}

/* Whether this program is the one that deals with the hit. To be asked once, and first. */
static __always_inline bool budget_has_turn(const struct hit *hit, __u64 cookie)
{
    __u32 index = (__u32)cookie;
    struct budget_slot *slot = budget_ns ? bpf_map_lookup_elem(&budget_slots, &index) : 0;

    return !slot || has_turn(slot, hit->tid, index, cookie);
}

/* Before the recording, when hits have no records: they cost what they do. */
static __always_inline void budget_count_early(__u64 cookie)
{
    __u32 index = (__u32)cookie;
    struct budget_slot *slot = bpf_map_lookup_elem(&budget_slots, &index);

    if (slot)
        __sync_fetch_and_add(&slot->early, 1);
}

/* Whether a hit is to be recorded. The call that comes right behind an entry (COOKIE_NEXT_) shares its fate.
 */
static __always_inline bool budget_admits(const struct hit *hit, __u64 cookie)
{
    __u32 index = (__u32)cookie, next = index + 1;
    struct budget_slot *slot, *behind = 0;

    if (!budget_ns)
        return true;
    slot = bpf_map_lookup_elem(&budget_slots, &index);
    if (!slot)
        return true;
    if (cookie & (COOKIE_NEXT_CALL | COOKIE_NEXT_JUMP))
        behind = bpf_map_lookup_elem(&budget_slots, &next);
    /* A return belongs to a call that was recorded, or says something about the stack. */
    if (cookie & COOKIE_AT_RETURN || can_afford(slot)) {
        __sync_fetch_and_add(&slot->recorded, 1);
        if (behind)
            __sync_fetch_and_add(&behind->recorded, 1);
        return !count_only;
    }
    leave_out(slot, hit->tid, index);
    if (behind)
        leave_out(behind, hit->tid, next);
    return false;
}

#endif
