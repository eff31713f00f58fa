/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All places that call a function, for functions which can only be probed dearly or not at all: if nobody can
 * call it but by a direct `call`, or a direct `jmp` as a tail call, probes on these instructions see every
 * call, and the kernel emulates them.
 *
 * That these are all is shown without trusting the disassembler: in all executable bytes, at every offset,
 * each four bytes that would be the displacement to the function must be those of a `call` or a jump which
 * the walk through the code (struct flow_map) has found as an instruction. Any other such bytes could be a
 * call in unknown code, or a `lea`; then the function is given up. So it is when its address is taken in any
 * way that flow_image.h lists, when another function's conditional branch leads to it, and when the function
 * before it may continue into it.
 */
#ifndef TRACECTL_COLLECTOR_PLAN_CALL_SITES_H
#define TRACECTL_COLLECTOR_PLAN_CALL_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/arch/disasm.h"
#include "image/flow/flow_map.h"

struct call_site {
    size_t callee;    /* index into the callees asked for */
    uint64_t address; /* of the call or jump */
    uint8_t length;   /* of the instruction, bytes */
    bool is_jump; /* the callee's entry is reached with the stack pointer as it is, with a call CALL_PUSHES
                     lower */
};

struct callee {
    size_t function;     /* set by the caller */
    bool is_complete;    /* all of its calls are known, and there is at least one */
    size_t first, count; /* its calls among call_sites.items */
};

struct call_sites {
    struct call_site *items; /* by callee and address */
    size_t count, capacity;
};

void call_sites_release(struct call_sites *sites);

/* Answers for `callees`, sorted by function, all at once: it reads all code once. `absolute` as for
 * flow_map_walk(). `sites` is filled in from empty. Every site of a complete callee is one that the kernel
 * emulates. -ENOMEM. */
int call_sites_find(struct disasm *disasm, struct flow_map *map, const struct image_function *functions,
                    bool absolute, struct callee *callees, size_t count, struct call_sites *sites);

#endif
