/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Goroutines: what Go's runtime, and code that it was inlined into, tells at the places that the collector
 * found in the program's file (collector/go/targets.h).
 *
 * A goroutine is known by its goid. In functions that Go compiled a register points to the runtime's struct
 * g of whoever runs: the goroutine, or g0 when the thread schedules; then m.curg is the goroutine on whose
 * behalf it does so, if any. Arguments are in registers (Go's ABIInternal, since go 1.17).
 */
#ifndef TRACECTL_BPF_GOROUTINES_H
#define TRACECTL_BPF_GOROUTINES_H

#include "bpf/arch.h"
#include "bpf/losses.h"
#include "bpf/probe_cookie.h"
#include "bpf/processes.h"
#include "bpf/ring.h"
#include "bpf/wire.h"

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, MAX_GO_PROBES);
    __type(key, __u32);
    __type(value, struct go_probe);
} go_probes SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, MAX_GO_PROGRAMS);
    __type(key, __u32);
    __type(value, struct go_fields);
} go_programs SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, MAX_GO_PROBES);
    __type(key, __u32);
    __type(value, struct go_delay);
} go_delays SEC(".maps");

/* A goroutine that is to be held up behind its go statement. */
struct go_behind {
    __u32 index, hit; /* of the go statement's place */
};

struct go_behind_key {
    __u64 g, process;
};

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1024);
    __type(key, struct go_behind_key);
    __type(value, struct go_behind);
} go_behinds SEC(".maps");

struct go_schedule go_schedules[GO_WORKERS_MAX]; /* each is written by the collector between two executions */

static __always_inline __u64 go_word(__u64 address)
{
    __u64 word;

    return address && !bpf_probe_read_user(&word, sizeof(word), (const void *)address) ? word : 0;
}

static __always_inline __u64 go_id(const struct go_fields *fields, __u64 g)
{
    return g ? go_word(g + fields->g_goid) : 0;
}

/* The goroutine that runs, or for which the scheduler does something; 0: none. */
static __always_inline __u64 go_acting(const struct go_fields *fields, __u64 g)
{
    __u64 id = go_id(fields, g), m;

    if (id || !g)
        return id;
    m = go_word(g + fields->g_m);
    return m ? go_id(fields, go_word(m + fields->m_curg)) : 0;
}

/* The two words that differ from kind to kind, and where in the program it happened. */
static __always_inline void go_fill(struct wire_go *record, const struct go_probe *probe,
                                    const struct go_fields *fields, const struct go_registers *at)
{
    record->object = at->arguments[0];
    record->value = at->arguments[1];
    switch (probe->kind) {
    case GO_AT_SPAWN:
        record->object = 0;
        record->value = go_word(at->arguments[0]);
        break;
    case GO_AT_SPAWNED:
        record->object = go_id(fields, at->arguments[1]);
        break;
    case GO_AT_EXECUTE:
    case GO_AT_END:
    case GO_AT_QUEUE:
        record->goroutine = go_id(fields, at->arguments[0]);
        break;
    case GO_AT_READY:
        record->object = go_id(fields, at->arguments[0]);
        break;
    case GO_AT_PARK:
        record->object = 0;
        record->value = at->arguments[2] & 0xff;
        break;
    case GO_AT_OPERATION:
        record->other = go_word(caller_slot(at->frame)); /* where the caller returns to */
        break;
    case GO_AT_SEND:
        record->value = at->arguments[2] & 1;
        record->place = at->arguments[3];
        break;
    case GO_AT_RECV:
        record->value = at->arguments[2] & 1;
        record->place = go_word(caller_slot(at->frame));
        break;
    case GO_AT_TEST:
        record->value = go_word(at->arguments[1]);
        break;
    case GO_AT_FATAL:
        record->object = go_word(at->arguments[0]);
        break;
    case GO_AT_EXIT:
        record->value = go_word(at->sp + CALL_PUSHES) & 0xffffffff;
        break;
    default:
        break;
    }
}

static __always_inline struct wire_go *go_reserve(const struct hit *hit, __u64 size)
{
    struct wire_go *record = report_loss(hit->tid) ? bpf_ringbuf_reserve(&ring, size, 0) : 0;

    if (!record)
        count_go_loss(hit->tid);
    return record;
}

static __always_inline void go_begin(struct wire_go *record, const struct hit *hit, __u32 index,
                                     const struct go_probe *probe, const struct go_fields *fields,
                                     const struct go_registers *at)
{
    record->header.kind = WIRE_GO;
    record->header.flags = 0;
    record->header.sp_high = 0;
    record->header.tid = hit->tid;
    record->header.ns = bpf_ktime_get_ns();
    record->probe = index;
    record->cases = 0;
    record->other = 0;
    record->goroutine = go_acting(fields, at->g);
    record->place = probe->place_in_code ? at->ip : go_word(at->sp + probe->sp_offset);
}

/* A select: its channels follow the record. */
static __always_inline void go_emit_select(const struct hit *hit, __u32 index, const struct go_probe *probe,
                                           const struct go_fields *fields, const struct go_registers *at)
{
    struct wire_go_select *record = (struct wire_go_select *)go_reserve(hit, sizeof(*record));
    __u32 cases = (__u32)(at->arguments[3] + at->arguments[4]), bytes = cases * sizeof(record->cases[0]);

    if (!record)
        return;
    go_begin(&record->go, hit, index, probe, fields, at);
    record->go.object = at->arguments[3];
    record->go.value = at->arguments[5] & 1;
    record->go.cases = cases;
    asm volatile("" : "+r"(bytes)); /* the verifier must see the limit on the size itself */
    if (bytes > sizeof(record->cases))
        bytes = sizeof(record->cases);
    if (bpf_probe_read_user(record->cases, bytes, (const void *)at->arguments[0]))
        record->go.cases = 0;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* A timer, and what it does when it is due. The place is two calls up: the caller of package time. */
static __always_inline void go_emit_timer(const struct hit *hit, __u32 index, const struct go_probe *probe,
                                          const struct go_fields *fields, const struct go_registers *at)
{
    struct wire_go_select *record = (struct wire_go_select *)go_reserve(hit, sizeof(*record));
    bool in_memory = probe->kind == GO_AT_TIMER_STRUCT;

    if (!record)
        return;
    go_begin(&record->go, hit, index, probe, fields, at);
    record->go.object = at->arguments[0];
    record->go.value = in_memory ? go_word(at->arguments[0] + 8) : at->arguments[1];
    record->go.other = in_memory ? go_word(at->arguments[0] + 16) : at->arguments[2];
    record->go.place = go_word(caller_slot(go_word(at->frame)));
    record->cases[0].element = go_word(in_memory ? go_word(at->arguments[0] + 24) : at->arguments[3]);
    record->cases[0].channel = in_memory ? go_word(at->arguments[0] + 40) : at->arguments[5];
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

static __always_inline void go_emit(const struct hit *hit, __u32 index, const struct go_probe *probe,
                                    const struct go_fields *fields, const struct go_registers *at,
                                    __u64 operand, bool slow)
{
    struct wire_go *record = go_reserve(hit, sizeof(*record));

    if (!record)
        return;
    go_begin(record, hit, index, probe, fields, at);
    go_fill(record, probe, fields, at);
    if (probe->kind == GO_AT_LOCK || probe->kind == GO_AT_DELAY) {
        record->object = operand;
        record->value = probe->kind == GO_AT_LOCK ? slow : at->g;
    }
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* Who is executed for: the process's worker. */
static __always_inline __u32 go_worker(const struct hit *hit)
{
    const struct process_state *process = process_of(hit->task);

    return process ? process->worker & (GO_WORKERS_MAX - 1) : 0;
}

/* How often the place was hit before in this execution; this hit counts `times`. */
static __always_inline __u32 go_count_hit(__u64 *hits, __u32 execution, __u32 times)
{
    __u64 first = (__u64)execution << 32, seen = *hits;

    if (seen >> 32 != execution && __sync_bool_compare_and_swap(hits, seen, first | times))
        return 0;
    return (__u32)__sync_fetch_and_add(hits, times);
}

/* splitmix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014. */
static __always_inline __u32 go_random(__u64 seed)
{
    seed += 0x9e3779b97f4a7c15ull;
    seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9ull;
    seed = (seed ^ (seed >> 27)) * 0x94d049bb133111ebull;
    return (__u32)(seed >> 32);
}

/* Whether a hit of the choice's place is the chosen one. */
static __always_inline bool go_is_hit(struct go_schedule *schedule, __u32 choice, __u32 hit)
{
    __u32 wanted = schedule->choices[choice].hit;

    if (!(wanted & GO_HIT_FOLLOWING))
        return wanted == hit;
    if (!choice || !(schedule->taken & 1u << (choice - 1)))
        return false;
    return __sync_fetch_and_add(&schedule->followed[choice], 1) == (wanted & ~GO_HIT_FOLLOWING);
}

/* `*ret_taken`: the choice, as a bit; 0 at random. */
static __always_inline bool go_is_chosen(struct go_schedule *schedule, __u32 index, __u32 hit,
                                         __u32 *ret_taken)
{
    if (!schedule->choice_count)
        return go_random(schedule->seed ^ ((__u64)index << 32 | hit)) < schedule->chance;
    for (__u32 i = 0; i < GO_CHOICES_MAX; i++) {
        if (i >= schedule->choice_count || schedule->choices[i].probe != index ||
            !go_is_hit(schedule, i, hit))
            continue;
        *ret_taken = 1u << i;
        return true;
    }
    return false;
}

/* Whether the goroutine is to be held up at this hit of the place. */
static __always_inline bool go_holds(struct go_schedule *schedule, __u32 index, __u32 hit)
{
    __u32 taken = 0;

    if (schedule->left <= 0 || !go_is_chosen(schedule, index, hit, &taken) ||
        __sync_fetch_and_add(&schedule->left, -1) <= 0)
        return false;
    __sync_fetch_and_or(&schedule->taken, taken);
    return true;
}

static __always_inline struct go_behind_key go_behind_key(const struct hit *hit, __u64 g)
{
    return (struct go_behind_key){.g = g, .process = (__u32)hit->task->tgid};
}

static __always_inline void go_hold_behind(const struct hit *hit, __u64 g, __u32 index, __u32 number)
{
    const struct go_behind_key key = go_behind_key(hit, g);
    const struct go_behind behind = {.index = index, .hit = number};

    bpf_map_update_elem(&go_behinds, &key, &behind, BPF_ANY);
}

/* Whether the goroutine is to be held up behind its go statement; `*ret_behind`: which one. */
static __always_inline bool go_is_held_behind(const struct hit *hit, __u64 g, struct go_behind *ret_behind)
{
    const struct go_behind_key key = go_behind_key(hit, g);
    struct go_behind *behind = bpf_map_lookup_elem(&go_behinds, &key);

    if (!behind)
        return false;
    *ret_behind = *behind;
    bpf_map_delete_elem(&go_behinds, &key);
    return true;
}

/* Whether the goroutine `g` is to be held up here; `*ret_hit` tells which time it is. */
static __always_inline bool go_delays_here(const struct hit *hit, __u32 index, const struct go_probe *probe,
                                           __u64 g, __u32 *ret_hit)
{
    struct go_delay *delay = bpf_map_lookup_elem(&go_delays, &index);
    __u32 worker = go_worker(hit);
    struct go_schedule *schedule = &go_schedules[worker];
    bool here;

    if (!delay || !schedule->execution)
        return false;
    *ret_hit = go_count_hit(&delay->hits[worker], schedule->execution, probe->behind ? 2 : 1);
    here = go_holds(schedule, index, *ret_hit);
    if (probe->behind && go_holds(schedule, index, *ret_hit + 1))
        go_hold_behind(hit, g, index, *ret_hit + 1);
    return here;
}

#define GO_HOLD_SIGNAL 23 /* SIGURG */

static __always_inline int go_hit(struct pt_regs *ctx)
{
    struct hit hit = current_hit();
    __u32 index, program;
    struct go_probe *probe;
    struct go_fields *fields;
    struct go_registers at;
    __u64 operand = 0;
    bool slow = false;

    if (!hit.flags)
        return 0;
    index = (__u32)probe_cookie(ctx);
    probe = bpf_map_lookup_elem(&go_probes, &index);
    if (!probe)
        return 0;
    program = probe->program;
    fields = bpf_map_lookup_elem(&go_programs, &program);
    if (!fields)
        return 0;
    at = go_registers_of(ctx);
    /* The function will begin again, on a larger stack or later. */
    if (probe->at_stack_check && stack_check_is_taken(at.flags))
        return 0;
    if (probe->kind == GO_AT_SELECT) {
        go_emit_select(&hit, index, probe, fields, &at);
        return 0;
    }
    if (probe->kind == GO_AT_TIMER || probe->kind == GO_AT_TIMER_STRUCT) {
        go_emit_timer(&hit, index, probe, fields, &at);
        return 0;
    }
    if (probe->kind == GO_AT_BEHIND_GO) {
        struct go_behind behind = {0};

        if (!go_is_held_behind(&hit, at.g, &behind))
            return 0;
        index = behind.index;
        operand = behind.hit;
        probe = bpf_map_lookup_elem(&go_probes, &index);
        if (!probe)
            return 0;
    } else if (probe->kind == GO_AT_DELAY) {
        __u32 hit_number = 0;

        if (!go_delays_here(&hit, index, probe, at.g, &hit_number))
            return 0;
        operand = hit_number;
    }
    if (probe->kind == GO_AT_LOCK) {
        operand = operand_address(ctx, probe->base, probe->index, probe->scale, probe->displacement);
        slow = branch_is_taken(probe->condition, at.flags) == !!probe->slow_taken;
    }
    go_emit(&hit, index, probe, fields, &at, operand, slow);
    if (probe->kind == GO_AT_DELAY || (probe->kind == GO_AT_EXIT && go_schedules[go_worker(&hit)].stop_exit))
        bpf_send_signal_thread(GO_HOLD_SIGNAL);
    return 0;
}

#endif
