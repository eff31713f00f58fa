/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Slots: where a thread's calls and returns are packed before they go into the ring.
 *
 * A thread takes a slot out of a pool at its first hit, and gives it back when it ends; one that finds none
 * writes plain records. Nobody else uses it meanwhile, and no program interrupts another one of the same
 * thread: probes hit in user mode, the life-cycle tracepoints and those of system calls come in between. So
 * there is one writer, which may be preempted and moved to another CPU at any time. Each CPU remembers the
 * slot of the thread that it saw last; that is only where to look first, the slot itself says whose it is.
 *
 * What the tokens of a slot say comes before anything else of the thread: whatever else is written flushes
 * them first. The ring being full keeps them where they are, and what happens then is lost without having
 * been packed: so the two predictors always continue from the same state.
 *
 * A thread that ends, or execs, while the ring is full leaves its slot behind for the collector.
 */
#ifndef TRACECTL_BPF_SLOTS_H
#define TRACECTL_BPF_SLOTS_H

#include "bpf/limits.h"
#include "bpf/predict.h"
#include "bpf/ring.h"
#include "bpf/shadow.h"
#include "bpf/wire.h"

#ifndef PACKS_OPTION /* tests set it while they run */
#define PACKS_OPTION const volatile
#endif

PACKS_OPTION bool packs = false; /* calls and returns are packed where that is possible */

/* What the collector does not see of a slot. */
struct slot_memory {
    struct predictor predictor;
    struct shadow shadow; /* of the thread, instead of that in `shadows` */
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, PACKED_SLOTS);
    __type(key, __u32);
    __type(value, struct packed_slot);
} packed_slots SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, PACKED_SLOTS);
    __type(key, __u32);
    __type(value, struct slot_memory);
} slot_memories SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, PACKED_SLOTS);
    __type(key, __u32);   /* tid */
    __type(value, __u32); /* its slot */
} thread_slots SEC(".maps");

/* The pool; the collector fills it. */
struct {
    __uint(type, BPF_MAP_TYPE_STACK);
    __uint(max_entries, PACKED_SLOTS);
    __type(value, __u32);
} free_slots SEC(".maps");

/* A thread's slot; both NULL: it has none. */
struct thread_slot {
    struct packed_slot *slot;
    struct slot_memory *memory;
};

static __always_inline struct thread_slot slot_at(__u32 index)
{
    struct thread_slot found = {};

    found.slot = bpf_map_lookup_elem(&packed_slots, &index);
    if (found.slot)
        found.memory = bpf_map_lookup_elem(&slot_memories, &index);
    if (!found.memory)
        found.slot = 0;
    return found;
}

static __always_inline void publish(struct packed_slot *slot, __u32 chunk, __u32 length, __u32 run)
{
    barrier();
    *(volatile __u64 *)&slot->progress =
        (__u64)chunk << PROGRESS_CHUNK_SHIFT | (__u64)length << PROGRESS_LENGTH_SHIFT | run;
}

/* A token for `run` events behind the first `at` bytes. Returns how many there are now. */
static __always_inline __u32 put_run(struct packed_slot *slot, __u32 at, __u32 run)
{
    if (!run)
        return at;
    if (run <= TOKEN_RUN_MAX) {
        slot->tokens[at] = (__u8)(TOKEN_RUN + run - 1);
        return at + 1;
    }
    run -= TOKEN_RUN_MAX + 1;
    slot->tokens[at] = (__u8)(TOKEN_LONG_RUN + (run >> 8 & 0x3f));
    slot->tokens[at + 1] = (__u8)run;
    return at + 2;
}

/*
 * What follows are global functions: the verifier looks at each of them once, and not on every way that leads
 * there. So they take the slot by its number.
 */

/* Moves what the slot holds into the ring. Returns 0 when the ring is full. */
__noinline int flush_slot(__u32 index)
{
    struct thread_slot found = slot_at(index);
    struct packed_slot *slot = found.slot;
    __u64 progress;
    __u32 at, run;

    if (!slot)
        return 1;
    progress = slot->progress;
    at = progress_length(progress) & (PACKED_BYTES - 1);
    run = progress_run(progress);
    if (!at && !run)
        return 1;
    at = put_run(slot, at, run);
    slot->record.header.kind = WIRE_PACKED;
    slot->record.header.flags = 0;
    slot->record.header.sp_high = 0;
    slot->record.header.tid = slot->owner;
    slot->record.header.ns = slot->reported_ns;
    slot->record.chunk = progress_chunk(progress);
    slot->record.events = slot->events + run;
    slot->record.returns = slot->returns;
    slot->record.check = predict_check(&found.memory->predictor);
    if (bpf_ringbuf_output(&ring, &slot->record, sizeof(slot->record) + at, BPF_RB_NO_WAKEUP))
        return 0;
    slot->events = slot->returns = 0;
    publish(slot, progress_chunk(progress) + 1, 0, 0);
    return 1;
}

/* The same for a thread, by its id: 1 as well when it has no slot. */
__noinline int flush_thread(__u32 tid)
{
    __u32 *index = bpf_map_lookup_elem(&thread_slots, &tid);

    return index ? flush_slot(*index) : 1;
}

/* Takes a slot for a thread that has none. Returns its number and one more, 0: there is none left. */
__noinline int claim_slot(__u32 tid, __u32 tgid)
{
    struct thread_slot taken;
    __u32 index;

    if (bpf_map_pop_elem(&free_slots, &index))
        return 0;
    taken = slot_at(index);
    if (!taken.slot || bpf_map_update_elem(&thread_slots, &tid, &index, BPF_ANY)) {
        bpf_map_push_elem(&free_slots, &index, BPF_ANY);
        return 0;
    }
    taken.slot->record.slot = index;
    taken.slot->reported_ns = 0;
    taken.slot->tgid = tgid;
    taken.slot->leaving = 0;
    taken.memory->shadow.count = 0;
    bpf_map_delete_elem(&shadows, &tid);
    *(volatile __u32 *)&taken.slot->owner = tid;
    return (int)index + 1;
}

/* The number, and one more, of the slot of a thread that has a hit; 0: it has none. `*hint`: where to look
 * first. `take`: it gets one if it has none. */
static __always_inline __u32 find_slot(__u32 tid, __u32 tgid, __u32 *hint, bool take)
{
    __u32 *known, index = *hint - 1;
    struct packed_slot *slot = bpf_map_lookup_elem(&packed_slots, &index);

    if (slot && slot->owner == tid && !slot->left_behind)
        return index + 1;
    known = bpf_map_lookup_elem(&thread_slots, &tid);
    index = known ? *known + 1 : take ? (__u32)claim_slot(tid, tgid) : 0;
    *hint = index;
    return index;
}

/* Gives the slot at `index` back. Returns WIRE_LEFT_BEHIND when the collector must look into it first. */
__noinline int leave_slot(__u32 index)
{
    struct thread_slot left = slot_at(index);
    __u32 tid;

    if (!left.slot || __sync_val_compare_and_swap(&left.slot->leaving, 0, 1))
        return 0;
    tid = left.slot->owner;
    bpf_map_delete_elem(&thread_slots, &tid);
    if (!flush_slot(index)) {
        *(volatile __u32 *)&left.slot->left_behind = 1;
        return WIRE_LEFT_BEHIND;
    }
    *(volatile __u32 *)&left.slot->owner = 0;
    if (!left.slot->broken)
        bpf_map_push_elem(&free_slots, &index, BPF_ANY);
    return 0;
}

/* The thread is no more, or has another id. */
static __always_inline __u8 leave_slot_of(__u32 tid)
{
    __u32 *index = packs ? bpf_map_lookup_elem(&thread_slots, &tid) : 0;

    return index ? (__u8)leave_slot(*index) : 0;
}

struct leaving_process {
    __u32 tgid;
    __u32 left; /* WIRE_LEFT_BEHIND, or 0 */
};

static long leave_if_of(__u64 index, void *context)
{
    struct leaving_process *process = context;
    __u32 at = (__u32)index;
    struct packed_slot *slot = bpf_map_lookup_elem(&packed_slots, &at);

    if (slot && slot->owner && slot->tgid == process->tgid)
        process->left |= (__u32)leave_slot(at);
    return 0;
}

/* The process is no more: its other threads have left user mode, but perhaps not yet their slots. */
static __always_inline __u8 leave_slots_of(__u32 tgid)
{
    struct leaving_process process = {.tgid = tgid};

    if (packs)
        bpf_loop(PACKED_SLOTS, leave_if_of, &process, 0);
    return (__u8)process.left;
}

#endif
