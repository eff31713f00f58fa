/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which processes are traced, and what each CPU remembers of the thread that it saw last, so that a hit needs
 * neither a look into a hash map nor, mostly, at the clock.
 */
#ifndef TRACECTL_BPF_PROCESSES_H
#define TRACECTL_BPF_PROCESSES_H

#include "bpf/limits.h"
#include "bpf/slots.h"
#include "bpf/wire.h"

const volatile bool with_time = true;
const volatile bool full_time = false; /* a time on every record */

/* enum recording_phase. The collector may spend many seconds in the kernel with the placing and the removal
 * of probes and reads no record meanwhile: calls would only fill the ring, and a stopped process would stand
 * for as long. */
volatile __u32 phase;

/* Counts up whenever what `processes` says about a thread may have changed. */
__u32 generation;

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, MAX_PROCESSES);
    __type(key, __u32); /* tgid */
    __type(value, struct process_state);
} processes SEC(".maps");

/*
 * `key` is written and read as a whole, since another thread may take the CPU in the middle of a program:
 * bits 0 to 31 the tid, 32 to 39 the process's flags, 40 to 63 the generation that they are from. The rest
 * only decides when the clock is read.
 */
struct seen_thread {
    __u64 key;
    __u64 jiffies;
    __u32 unstamped; /* records since the last one with a time */
    __u32 slot;      /* where to look first for the thread's slot: its number and one more (bpf/slots.h) */
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct seen_thread);
} seen_threads SEC(".maps");

#define RECORDS_A_STAMP 4

/* A hit, as its thread's state stands. */
struct hit {
    struct task_struct *task;
    __u32 tid;
    __u32 flags;  /* of the process; 0: not traced */
    bool stamped; /* the record should carry a time */
    __u32 slot;   /* number of the thread's slot, and one more; 0: none, or not looked for */
};

static __always_inline struct process_state *process_of(const struct task_struct *task)
{
    __u32 tgid = (__u32)task->tgid;

    return bpf_map_lookup_elem(&processes, &tgid);
}

static __always_inline bool stamp_is_due(struct seen_thread *seen, bool other_thread)
{
    __u64 jiffies = bpf_jiffies64();

    if (other_thread || seen->jiffies != jiffies || ++seen->unstamped >= RECORDS_A_STAMP) {
        seen->jiffies = jiffies;
        seen->unstamped = 0;
        return true;
    }
    return false;
}

/* Whose hit this is. The caller does nothing when `flags` is 0. */
static __always_inline struct hit current_hit(void)
{
    struct hit hit = {.task = bpf_get_current_task_btf()};
    struct process_state *process;
    __u32 zero = 0, now = generation;
    struct seen_thread *seen = bpf_map_lookup_elem(&seen_threads, &zero);
    __u64 expected, key;
    bool other;

    if (phase != PHASE_RECORDING || !seen)
        return hit;
    hit.tid = (__u32)hit.task->pid;
    expected = (__u64)(now & 0xffffff) << 40 | hit.tid;
    key = *(volatile __u64 *)&seen->key;
    other = (key & ~(0xffull << 32)) != expected;
    if (other) {
        process = process_of(hit.task);
        key = expected | (__u64)(process ? process->flags & 0xff : 0) << 32;
        *(volatile __u64 *)&seen->key = key;
    }
    hit.flags = (__u32)(key >> 32) & 0xff;
    if (hit.flags && with_time)
        hit.stamped = full_time || stamp_is_due(seen, other);
    return hit;
}

/* The hit will have no record: its time is for the next one. */
static __always_inline void stamp_next(void)
{
    __u32 zero = 0;
    struct seen_thread *seen = bpf_map_lookup_elem(&seen_threads, &zero);

    if (seen)
        seen->unstamped = RECORDS_A_STAMP;
}

static __always_inline void processes_changed(void)
{
    __sync_fetch_and_add(&generation, 1);
}

#endif
