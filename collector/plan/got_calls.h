/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The places that call imported functions without a stub: a call through a slot of the GOT and,
 * as a tail call, a jump through one. They are all of a function's calls unless an instruction loads the
 * slot: then it may be called through a register.
 */
#ifndef TRACECTL_COLLECTOR_PLAN_GOT_CALLS_H
#define TRACECTL_COLLECTOR_PLAN_GOT_CALLS_H

#include "collector/plan/call_sites.h"

/* Answers for `callees`, functions with IMAGE_FUNCTION_NO_STUB, sorted by function, all at once: it reads all
 * instructions of the map. `sites` is filled in from empty. The kernel single-steps them. -ENOMEM. */
int got_calls_find(struct disasm *disasm, const struct flow_map *map, const struct image_function *functions,
                   size_t function_count, struct callee *callees, size_t count, struct call_sites *sites);

#endif
