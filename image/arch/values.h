/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What one instruction does to what is known of the registers and of the words of the
 * frame.
 *
 * A value is a constant, or what some place held at a point where one began to look plus a constant, or
 * unknown. What an instruction does to it is worked out for the few that loop counters and stack pointers are
 * changed by; all others make what they write unknown (Capstone says which registers and memory those are).
 */
#ifndef TRACECTL_IMAGE_ARCH_VALUES_H
#define TRACECTL_IMAGE_ARCH_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/arch/disasm.h"
#include "image/arch/registers.h"

struct error;

enum flow_value_kind {
    FLOW_VALUE_UNKNOWN,
    FLOW_VALUE_CONSTANT,
    FLOW_VALUE_SUM, /* what `place` held at the beginning, plus the constant */
};

struct flow_value {
    int64_t constant;
    uint16_t place;
    uint8_t kind; /* enum flow_value_kind */
    uint8_t size; /* the bytes, counted from the lowest, for which this is true: 4 or 8 */
};

/* Places: the registers as numbered in machine code (enum machine_register), the frame's address, then slots.
 */
#define FLOW_PLACE_FRAME MACHINE_REGISTERS /* the stack pointer at the function's entry */
#define FLOW_PLACE_SLOTS (MACHINE_REGISTERS + 1)
#define FLOW_SLOTS_MAX 200

struct flow_slot {
    int64_t offset;       /* from rsp at the function's entry; the canonical frame address is 8 higher */
    uint8_t size;         /* 4 or 8 */
    bool vouched, shared; /* a variable of its own; somebody else may write it */
};

struct value_machine;

int value_machine_new(struct value_machine **ret_machine, struct error *err);
void value_machine_free(struct value_machine *machine);

/* How an instruction reaches into the frame. */
struct frame_touch {
    int64_t offset; /* from rsp at the function's entry */
    uint8_t size;   /* 0: the address is taken, or indexed from */
    bool write;
};

/* Changes `state`, the values of all places before the instruction, into those behind it. Up to two touches
 * are reported in *ret_touches; returns how many. `*ret_lost` is set when it reaches into the frame at an
 * unknown place. */
size_t value_machine_step(struct value_machine *machine, const struct instruction *instruction,
                          const struct flow_slot *slots, size_t slot_count, bool calls_keep,
                          struct flow_value *state, struct frame_touch ret_touches[2], bool *ret_lost);

#endif
