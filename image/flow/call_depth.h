/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How deep the frame of a function is where it calls another one: with the stack pointer that the other one
 * is entered with, that tells where the function's own frame begins. Found by following what each instruction
 * adds to the stack pointer along the control flow, as unwinders without tables do; compilers keep it the
 * same on all ways to a place.
 */
#ifndef TRACECTL_IMAGE_FLOW_CALL_DEPTH_H
#define TRACECTL_IMAGE_FLOW_CALL_DEPTH_H

#include <stddef.h>
#include <stdint.h>

#include "image/flow/flow_graph.h"

struct call_depth {
    uint64_t return_address; /* of the call: the instruction behind it */
    uint64_t bytes;          /* the stack pointer at the function's entry less that right before the call */
};

/* The calls of a function, sorted by address. Left out are those before which the depth is not known
 * (alloca(), or ways that differ), and all calls of a function whose control flow is not all known
 * (flow_graph_is_closed()). The caller frees *ret_calls. -ENOMEM. */
int call_depths(const struct flow_graph *graph, struct call_depth **ret_calls, size_t *ret_count);

#endif
