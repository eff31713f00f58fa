/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The RET instructions of a function, found by following every way from its first instruction through its
 * extent and the fragments that it jumps into. Only what is reached is believed to be code: a probe on a byte
 * of data would change the data. Landing pads of exceptions are not reached; the calls that return behind one
 * are closed by inference.
 */
#ifndef TRACECTL_COLLECTOR_PLAN_RETURN_SITES_H
#define TRACECTL_COLLECTOR_PLAN_RETURN_SITES_H

#include <stddef.h>
#include <stdint.h>

#include "image/arch/disasm.h"
#include "image/flow/flow_map.h"

struct return_sites {
    uint64_t *items; /* addresses, in no order */
    size_t count, capacity;
};

void return_sites_release(struct return_sites *sites);

/* Finds those of functions[index], of which `functions` has `count`, and puts them in place of what `sites`
 * held. -EILSEQ: some of what is reached cannot be decoded or probed, so the answer would not be complete;
 * -ENOMEM. */
int return_sites_find(struct disasm *disasm, const struct flow_map *map,
                      const struct image_function *functions, size_t count, size_t index,
                      struct return_sites *sites);

#endif
