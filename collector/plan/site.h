/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where in a function its entry probe goes, and what it will cost there.
 *
 * Every place in the entry block will do: it is passed once for every call, provided that nothing but the
 * first instruction leads there. So the block is followed from the first instruction on, with the distance
 * that the stack pointer has moved, up to the first instruction that
 *
 * - a branch, a jump table or a taken address leads to (struct flow_map; from all over the image);
 * - leaves the block, or may stay for long: control transfers, system calls, repeated string operations; a
 *   locked operation, unless there is no site before it. The instruction itself may still be the site;
 * - loses track of the stack pointer;
 * - is unknown to the disassembler, or lies further in than 32 instructions or 160 bytes, or in another
 *   function.
 *
 * A branch from inside the function back to its first instruction makes every turn look like a call: no site,
 * but for one exception. Go's functions compare the stack pointer with a limit first and, where there is too
 * little room, branch to a piece of code that calls the runtime for more stack and jumps back to the first
 * instruction. Such a piece is known by what it does (stack_check.h), and the search continues after the
 * branch: what lies there is passed once.
 */
#ifndef TRACECTL_COLLECTOR_PLAN_SITE_H
#define TRACECTL_COLLECTOR_PLAN_SITE_H

#include <stddef.h>
#include <stdint.h>

#include "collector/arch/probe_class.h"
#include "image/arch/disasm.h"
#include "image/flow/flow_map.h"

/* A frame that is larger by the time of the site is not followed: a probe's cookie can hold so much. */
#define SITE_SP_OFFSET_MAX (0xffff * 8)

struct site {
    uint64_t offset; /* of the probed instruction from the start of the function, in bytes */
    uint32_t
        sp_offset; /* how far the stack pointer lies below its value at the first instruction; a multiple of 8 */
    enum site_class class;
    enum site_refusal refusal; /* SITE_OK unless class is SITE_REFUSED */
};

struct sites {
    struct site unmoved; /* the cheapest and first where sp_offset is 0: a return probe is possible */
    struct site any;     /* the cheapest, whatever sp_offset is */
};

/* Chooses sites of the function whose `size` bytes of code are `code`, loaded at `address`. Both answers are
 * always filled in; SITE_IFUNC and what follows it are never given here (they are the caller's to know),
 * SITE_NO_ROOM for `unmoved` also where there are only sites with the stack pointer moved. */
void site_choose(struct disasm *disasm, const struct flow_map *map, const uint8_t *code, size_t size,
                 uint64_t address, struct sites *ret_sites);

/* A few lower-case words for messages, such as "a branch leads back to its first instruction". */
const char *site_refusal_text(enum site_refusal refusal);
const char *site_class_text(enum site_class class);

#endif
