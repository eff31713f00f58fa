/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls and returns become tokens (bpf/predict.h), or plain records where they cannot. */
#ifndef TRACECTL_BPF_PACK_H
#define TRACECTL_BPF_PACK_H

#include "bpf/losses.h"
#include "bpf/predict.h"
#include "bpf/slots.h"

struct __attribute__((packed)) unaligned_word {
    __u64 value;
};

struct __attribute__((packed)) unaligned_half {
    __u32 value;
};

static __always_inline void put_word(struct packed_slot *slot, __u32 at, __u64 value)
{
    ((struct unaligned_word *)&slot->tokens[at])->value = value;
}

static __always_inline void put_half(struct packed_slot *slot, __u32 at, __u32 value)
{
    ((struct unaligned_half *)&slot->tokens[at])->value = value;
}

/* The time of the event that follows. */
static __always_inline __u32 put_time(struct packed_slot *slot, __u32 at, __u64 ns)
{
    __u64 since = ns - slot->reported_ns;

    if (!ns)
        return at;
    if (slot->reported_ns && since <= ~0u) {
        slot->tokens[at] = TOKEN_TIME_SINCE;
        put_half(slot, at + 1, (__u32)since);
        at += 5;
    } else {
        slot->tokens[at] = TOKEN_TIME;
        put_word(slot, at + 1, ns);
        at += 9;
    }
    slot->reported_ns = ns;
    return at;
}

static __always_inline __u32 put_event(struct packed_slot *slot, __u32 at, const struct wire_event *event)
{
    slot->tokens[at] = TOKEN_EVENT;
    slot->tokens[at + 1] = event->kind;
    slot->tokens[at + 2] = event->flags;
    put_half(slot, at + 3, event->function);
    put_word(slot, at + 7, event->sp);
    put_word(slot, at + 15, event->return_address);
    put_word(slot, at + 23, event->gone);
    return at + 31;
}

static __always_inline __u32 put_symbol(struct packed_slot *slot, __u32 at, const struct symbol *symbol)
{
    __s64 distance = (__s64)symbol->where >> SYMBOL_DISTANCE_SHIFT;

    put_word(slot, at + 1, symbol->what);
    if (distance == (__s16)distance && !(symbol->where & 0xffffffff)) {
        slot->tokens[at] = TOKEN_NEAR_SYMBOL;
        slot->tokens[at + 9] = (__u8)symbol_above(symbol);
        slot->tokens[at + 10] = (__u8)distance;
        slot->tokens[at + 11] = (__u8)(distance >> 8);
        return at + 12;
    }
    slot->tokens[at] = TOKEN_SYMBOL;
    put_word(slot, at + 9, symbol->where);
    return at + 17;
}

/* A token for an event that was not guessed. */
static __always_inline __u32 put_surprise(struct packed_slot *slot, struct predictor *predictor, __u32 at,
                                          const struct wire_event *event)
{
    struct symbol symbol;
    __u32 number;
    bool known;

    if (!symbol_of(predictor, event, &symbol)) {
        predict_break(predictor, event);
        return put_event(slot, at, event);
    }
    number = symbol_number(predictor, &symbol, &known);
    predictor->next[predict_place(predictor)] = (__u16)number;
    if (known) {
        slot->tokens[at] = (__u8)(TOKEN_KNOWN + (number >> 8));
        slot->tokens[at + 1] = (__u8)number;
        at += 2;
    } else {
        at = put_symbol(slot, at, &symbol);
    }
    predict_pass(predictor, number, event);
    return at;
}

/* Whether the event is the one that is guessed; `*ret_number`: of its symbol. */
static __always_inline bool is_guessed(const struct predictor *predictor, const struct wire_event *event,
                                       __u32 *ret_number)
{
    __u32 number = predictor->next[predict_place(predictor)] & (PREDICT_KNOWN - 1);
    struct wire_event guess = symbol_event(predictor, &predictor->known[number]);

    *ret_number = number;
    return is_same_event(&guess, event);
}

/* Packs an event that needs a token. `ns`: its time, 0: it has none. Returns 0 when the ring is full. */
__noinline int pack_token(__u32 index, const struct wire_event *event, __u64 ns)
{
    struct thread_slot found = slot_at(index);
    struct packed_slot *slot = found.slot;
    struct predictor *predictor;
    __u32 run, number;

    if (!slot || !event)
        return 0;
    predictor = &found.memory->predictor;
    run = progress_run(slot->progress);
    if ((progress_length(slot->progress) > PACKED_BYTES - TOKEN_BYTES_MAX ||
         slot->events + run >= PACKED_EVENTS) &&
        !flush_slot(index))
        return 0;
    run = progress_run(slot->progress);
    slot->events += run;
    slot->at = put_run(slot, progress_length(slot->progress) & (PACKED_BYTES - 1), run);
    slot->at = put_time(slot, *(volatile __u32 *)&slot->at & (PACKED_BYTES - 1), ns);
    run = is_guessed(predictor, event, &number);
    if (run) {
        predict_pass(predictor, number, event);
    } else {
        slot->at = put_surprise(slot, predictor, *(volatile __u32 *)&slot->at & (PACKED_BYTES - 1), event);
        slot->events++;
    }
    slot->returns += event->kind == WIRE_RETURN;
    publish(slot, progress_chunk(slot->progress), slot->at, run);
    return 1;
}

/* Packs an event of the thread that owns the slot. Returns 0 when the ring is full. */
__noinline int pack_event(__u32 index, const struct wire_event *event, __u64 ns)
{
    struct thread_slot found = slot_at(index);
    struct packed_slot *slot = found.slot;
    struct predictor *predictor;
    __u64 progress;
    __u32 number;

    if (!slot || !event)
        return 0;
    predictor = &found.memory->predictor;
    progress = slot->progress;
    if (ns && ns - slot->reported_ns < PACKED_TIME_NS)
        ns = 0;
    if (ns || progress_run(progress) >= TOKEN_LONG_RUN_MAX || !is_guessed(predictor, event, &number))
        return pack_token(index, event, ns);
    predict_pass(predictor, number, event);
    if (event->kind == WIRE_RETURN)
        slot->returns++;
    barrier();
    *(volatile __u64 *)&slot->progress = progress + 1;
    return 1;
}

#endif
