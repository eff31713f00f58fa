/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a thread does next, guessed from what it did before: the kernel side leaves out of the ring what the
 * collector guesses as well. Both include this file, and both keep a predictor of each slot (bpf/slots.h)
 * that sees the same events in the same order.
 *
 * An event is a symbol: what a record would say of it, with the stack pointer as the distance to that of an
 * open call, which mostly is the caller's. Symbols that were seen have a number. The next one is guessed to
 * be the one that followed the last three when they came before (a finite context method: Sazeides and Smith,
 * "The predictability of data values", MICRO 1997). A guess is made into the event that the collector would
 * make of it, and all of that is compared: nothing rests on a hash, or on the open calls being right.
 */
#ifndef TRACECTL_BPF_PREDICT_H
#define TRACECTL_BPF_PREDICT_H

#include "bpf/wire.h"

#define PREDICT_KNOWN_BITS 10
#define PREDICT_KNOWN (1u << PREDICT_KNOWN_BITS)
#define PREDICT_WAYS 4u /* numbers that a symbol may have */
#define PREDICT_CONTEXT_BITS 12
#define PREDICT_CONTEXTS (1u << PREDICT_CONTEXT_BITS)
#define PREDICT_ORDER 3 /* symbols that a guess is made from */
#define PREDICT_FRAMES 64u

/*
 * what:  kind in bits 0 to 1, WIRE_ON_SIGNAL_STACK and WIRE_RETURN_UNSEEN in 2 to 3, the lower half of the
 *        function in 4 to 15, the return address above
 * where: the upper half of the function in bits 0 to 11; `gone` in 12 to 31, in words above the stack pointer
 *        (0: nothing is gone); in 32 to 35 how many open calls lie above the one that the distance is from,
 * or SYMBOL_FROM_LAST; the distance, downwards, above The function of a return may be SYMBOL_ITS_FUNCTION: it
 * is the end of that open call. No event is all zeros.
 */
struct symbol {
    __u64 what, where;
};

#define SYMBOL_FUNCTIONS 0xffffffu
#define SYMBOL_ITS_FUNCTION 0xffffffu
#define SYMBOL_ADDRESSES (1ull << 48)
#define SYMBOL_GONE (1u << 20)
#define SYMBOL_ABOVE_SHIFT 32
#define SYMBOL_DISTANCE_SHIFT 36
#define SYMBOL_FROM_LAST 15u /* the distance is from the stack pointer of the event before */

/* A call that may be open. */
struct predict_frame {
    __u64 sp;
    __u32 function; /* PREDICT_UNSEEN: its return will not be seen */
    __u32 number;   /* of its symbol */
};

#define PREDICT_UNSEEN 0x80000000u

struct predictor {
    __u64 sp;            /* of the last event */
    __u64 context;       /* numbers of the last PREDICT_ORDER symbols */
    __u32 top;           /* the innermost frame, modulo PREDICT_FRAMES */
    __u32 victim;        /* the one that a new symbol replaces */
    __u32 above, unused; /* of symbol_of: the verifier does not follow what was in memory */
    __u64 sum;           /* of all events, see predict_check */
    struct predict_frame frames[PREDICT_FRAMES];
    struct symbol known[PREDICT_KNOWN];
    __u16 next[PREDICT_CONTEXTS]; /* number of what followed last */
};

/* A call or a return as a record says it. */
struct wire_event {
    __u64 sp;
    __u64 return_address, gone; /* of a WIRE_CALL_FROM, else 0 */
    __u32 function;
    __u8 kind, flags;
    __u16 unused;
};

static __always_inline const struct predict_frame *predict_frame(const struct predictor *predictor,
                                                                 __u32 above)
{
    return &predictor->frames[(predictor->top - above) % PREDICT_FRAMES];
}

static __always_inline __u32 symbol_above(const struct symbol *symbol)
{
    return symbol->where >> SYMBOL_ABOVE_SHIFT & 15;
}

/* The event that a symbol means now. */
static __always_inline struct wire_event symbol_event(const struct predictor *predictor,
                                                      const struct symbol *symbol)
{
    const struct predict_frame *frame = predict_frame(predictor, symbol_above(symbol));
    __u64 base = symbol_above(symbol) == SYMBOL_FROM_LAST ? predictor->sp : frame->sp;
    __u64 gone = (symbol->where >> 12 & (SYMBOL_GONE - 1)) * 8;
    struct wire_event event = {
        .kind = symbol->what & 3,
        .flags = (__u8)((symbol->what >> 2 & 1) * WIRE_ON_SIGNAL_STACK |
                        (symbol->what >> 3 & 1) * WIRE_RETURN_UNSEEN),
        .function = (__u32)((symbol->what >> 4 & 0xfff) | (symbol->where & 0xfff) << 12),
        .return_address = symbol->what >> 16,
        .sp = base - (__u64)((__s64)symbol->where >> SYMBOL_DISTANCE_SHIFT),
    };

    if (event.function == SYMBOL_ITS_FUNCTION)
        event.function = frame->function & ~PREDICT_UNSEEN;
    event.gone = gone ? event.sp + gone : 0;
    return event;
}

static __always_inline bool is_same_event(const struct wire_event *a, const struct wire_event *b)
{
    return a->sp == b->sp && a->function == b->function && a->kind == b->kind && a->flags == b->flags &&
           a->return_address == b->return_address && a->gone == b->gone;
}

/* Whether a call is over when this event comes. One at the same place has made a tail call, and comes back
 * with it. */
static __always_inline bool frame_is_over(const struct predict_frame *frame, const struct wire_event *event)
{
    if (event->kind == WIRE_RETURN)
        return frame->sp + 8 < event->sp;
    return frame->sp < event->sp || (frame->sp == event->sp && frame->function & PREDICT_UNSEEN);
}

/* Returns false when the event does not fit in a symbol. */
static __always_inline bool symbol_of(struct predictor *predictor, const struct wire_event *event,
                                      struct symbol *ret_symbol)
{
    __u64 gone = event->gone ? (event->gone - event->sp) / 8 : 0, distance, flags;
    const struct predict_frame *frame;
    __u32 above = 0, function = event->function;
    struct wire_event same;

    while (above < SYMBOL_FROM_LAST - 1 && frame_is_over(predict_frame(predictor, above), event))
        above++;
    *(volatile __u32 *)&predictor->above = above;
    above = *(volatile __u32 *)&predictor->above & 15;
    frame = predict_frame(predictor, above);
    distance = frame->sp - event->sp;
    if (distance + (1ull << 27) >= 1ull << 28) {
        above = SYMBOL_FROM_LAST;
        distance = predictor->sp - event->sp;
    } else if (event->kind == WIRE_RETURN && distance == (__u64)-8 &&
               function == (frame->function & ~PREDICT_UNSEEN)) {
        function = SYMBOL_ITS_FUNCTION;
    }
    flags = (event->flags & WIRE_ON_SIGNAL_STACK ? 4 : 0) | (event->flags & WIRE_RETURN_UNSEEN ? 8 : 0);
    ret_symbol->what = event->kind | flags | (function & 0xfff) << 4 | event->return_address << 16;
    ret_symbol->where = (function >> 12 & 0xfff) | (gone & (SYMBOL_GONE - 1)) << 12 |
                        (__u64)above << SYMBOL_ABOVE_SHIFT | distance << SYMBOL_DISTANCE_SHIFT;
    same = symbol_event(predictor, ret_symbol);
    return event->function < SYMBOL_FUNCTIONS && is_same_event(&same, event);
}

/* Which entry of `next` is the guess. */
static __always_inline __u32 predict_place(const struct predictor *predictor)
{
    return (__u32)(predictor->context * 0x9e3779b97f4a7c15ull >> (64 - PREDICT_CONTEXT_BITS));
}

/* The number of a symbol, and whether it had it before; else it has it from now on. */
static __always_inline __u32 symbol_number(struct predictor *predictor, const struct symbol *symbol,
                                           bool *ret_known)
{
    __u64 hash = (symbol->what * 0x9e3779b97f4a7c15ull ^ symbol->where) * 0xd6e8feb86659fd93ull;
    __u32 first = (__u32)((hash ^ hash << 27) >> (64 - PREDICT_KNOWN_BITS)), way, number;

    for (way = 0; way < PREDICT_WAYS; way++) {
        const struct symbol *at = &predictor->known[first ^ way];

        if (at->what == symbol->what && at->where == symbol->where) {
            *ret_known = true;
            return first ^ way;
        }
        if (!at->what)
            break;
    }
    *ret_known = false;
    number = first ^ (way < PREDICT_WAYS ? way : predictor->victim++ % PREDICT_WAYS);
    asm volatile(""
                 : "+r"(number)); /* the mask stays: before Linux 6.10 a XOR has no bounds for the verifier */
    predictor->known[number & (PREDICT_KNOWN - 1)] = *symbol;
    return number & (PREDICT_KNOWN - 1);
}

static __always_inline void predict_sum(struct predictor *predictor, const struct wire_event *event)
{
    predictor->sum = (predictor->sum << 1 | predictor->sum >> 63) + event->sp + event->return_address +
                     event->gone + ((__u64)event->function << 16 | event->flags << 8 | event->kind);
}

/* A call is open from now on. */
static __always_inline void predict_open(struct predictor *predictor, __u32 top, __u32 number,
                                         const struct wire_event *event)
{
    predictor->frames[top % PREDICT_FRAMES] = (struct predict_frame){
        .sp = event->sp,
        .function = event->function | (event->flags & WIRE_RETURN_UNSEEN ? PREDICT_UNSEEN : 0),
        .number = number,
    };
}

/* The symbol with that number has come, as this event. */
static __always_inline void predict_pass(struct predictor *predictor, __u32 number,
                                         const struct wire_event *event)
{
    const struct symbol *symbol = &predictor->known[number & (PREDICT_KNOWN - 1)];
    __u32 above = symbol_above(symbol), top = predictor->top - (above == SYMBOL_FROM_LAST ? 0 : above);

    if (event->kind == WIRE_RETURN) {
        number = (predictor->frames[top % PREDICT_FRAMES].number ^ (PREDICT_KNOWN - 1)) & (PREDICT_KNOWN - 1);
        top -= above != SYMBOL_FROM_LAST;
    } else {
        predict_open(predictor, ++top, number, event);
    }
    predictor->top = top;
    predictor->context = (predictor->context << PREDICT_KNOWN_BITS | number) &
                         ((1ull << PREDICT_ORDER * PREDICT_KNOWN_BITS) - 1);
    predictor->sp = event->sp;
    predict_sum(predictor, event);
}

/* An event that is no symbol has come. */
static __always_inline void predict_break(struct predictor *predictor, const struct wire_event *event)
{
    if (event->kind != WIRE_RETURN)
        predict_open(predictor, ++predictor->top, 0, event);
    predictor->context = 0;
    predictor->sp = event->sp;
    predict_sum(predictor, event);
}

/* Differs, nearly always, between predictors that have not seen the same events. */
static __always_inline __u64 predict_check(const struct predictor *predictor)
{
    return (predictor->sum + predictor->context) * 0xd6e8feb86659fd93ull + predictor->top;
}

/*
 * Tokens. A byte, and what belongs to it, in the machine's byte order:
 *   00 to 7f         1 to 128 events came as they were guessed
 *   80 to bf, byte   129 to 16512, the higher bits first
 *   c0 to c3, byte   a known symbol, by its number, the higher bits first
 *   d0               a symbol that was not known: `what`, `where`
 *   d1               the same: `what`, `above` in 8 bits, the distance in 16; the rest of `where` is 0
 *   d2               an event that is no symbol: kind and flags in 8 bits each, the function in 32, the
 *                    stack pointer, the return address and `gone`
 *   d8               the time of the event that follows: ns in 64 bits
 *   d9               the same, since the last one of this thread, in 32 bits
 */
enum token {
    TOKEN_RUN = 0,
    TOKEN_LONG_RUN = 0x80,
    TOKEN_KNOWN = 0xc0,
    TOKEN_SYMBOL = 0xd0,
    TOKEN_NEAR_SYMBOL = 0xd1,
    TOKEN_EVENT = 0xd2,
    TOKEN_TIME = 0xd8,
    TOKEN_TIME_SINCE = 0xd9,
};

#define TOKEN_RUN_MAX 128u
#define TOKEN_LONG_RUN_MAX (TOKEN_RUN_MAX + (1u << 14))
#define TOKEN_BYTES_MAX 48 /* of a run, a time and an event together, and some more */

#endif
