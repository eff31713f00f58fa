/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is known about the registers and the words of the frame at each point of a function: which of them
 * hold a constant, or what one of them held at the beginning of an iteration plus a constant. Found by
 * following the values through the instructions until nothing changes any more (Kildall); where ways meet
 * with different values, nothing is known.
 *
 * Words of the frame are known only as long as nobody else can write them: one whose address is taken
 * (`lea`), or above such an address where a larger object could reach it, is none of them.
 * `flow_values_vouch()` tells of words that are variables of their own, as debug information knows them:
 * those are endangered by their own address only.
 */
#ifndef TRACECTL_IMAGE_FLOW_FLOW_VALUES_H
#define TRACECTL_IMAGE_FLOW_FLOW_VALUES_H

#include "image/arch/values.h"
#include "image/flow/flow_graph.h"

struct flow_values;

/* Looks at the whole function, from its entry. `calls_keep`: called functions keep the registers that
 * the C calling convention says (register_is_kept) (Go's does not). The graph is borrowed. -ENOTSUP: no disassembler;
 * -ENOMEM. */
int flow_values_new(const struct flow_graph *graph, bool calls_keep, struct flow_values **ret_values,
                    struct error *err);
void flow_values_free(struct flow_values *values);

DEFINE_CLEANUP(cleanup_flow_values, struct flow_values *, flow_values_free)
#define AUTO_FLOW_VALUES CLEANUP(cleanup_flow_values)

/* Debug information knows an integer variable of `size` bytes at that place of the frame. To be called before
 * the values are asked for. */
void flow_values_vouch(struct flow_values *values, int64_t offset, uint8_t size);

/* Follows the values anew: from the function's entry (`loop` FLOW_NONE), or through one iteration of `loop`,
 * from its header on, where each place holds what it holds. -ENOMEM. */
int flow_values_follow(struct flow_values *values, uint32_t loop);

/* The number of places, and the slots among them: slot i is place FLOW_PLACE_SLOTS + i. Borrowed. */
size_t flow_values_places(const struct flow_values *values);
const struct flow_slot *flow_values_slots(const struct flow_values *values, size_t *ret_count);

/* Of what was last followed: the values before the instruction at `address`. False: not reached. `ret_state`
 * has room for flow_values_places(). */
bool flow_values_before(struct flow_values *values, uint64_t address, struct flow_value *ret_state);

/* Of what was last followed: the values at the end of a block. */
bool flow_values_after_block(struct flow_values *values, uint32_t block, struct flow_value *ret_state);

#endif
