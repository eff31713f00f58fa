/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Private to image/: what one instruction does to what is known of the registers and of the words of the
 * frame.
 *
 * A value is a constant, or what some place held at a point where one began to look plus a constant, or
 * unknown. What an instruction does to it is worked out for the few that loop counters and stack pointers are
 * changed by; all others make what they write unknown (Capstone says which registers and memory those are).
 */
#ifndef TRACECTL_IMAGE_FLOW_FLOW_STEP_H
#define TRACECTL_IMAGE_FLOW_FLOW_STEP_H

#include "image/flow/flow_values.h"

struct flow_machine;

int flow_machine_new(struct flow_machine **ret_machine, struct error *err);
void flow_machine_free(struct flow_machine *machine);

/* How an instruction reaches into the frame. */
struct flow_touch {
    int64_t offset; /* from rsp at the function's entry */
    uint8_t size;   /* 0: the address is taken, or indexed from */
    bool write;
};

/* Changes `state`, the values of all places before the instruction, into those behind it. Up to two touches
 * are reported in *ret_touches; returns how many. `*ret_lost` is set when it reaches into the frame at an
 * unknown place. */
size_t flow_step(struct flow_machine *machine, const struct instruction *instruction,
                 const struct flow_slot *slots, size_t slot_count, bool calls_keep, struct flow_value *state,
                 struct flow_touch ret_touches[2], bool *ret_lost);

#endif
