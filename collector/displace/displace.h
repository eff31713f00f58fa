/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether the first bytes of a function may be replaced by a jump to a stub, and which instructions move
 * there with them.
 *
 * A jump to the stub takes five bytes on x86-64. The instructions that it covers in whole or in part move to the end of the
 * stub, which then jumps to what follows them. So of the five bytes only the first may be led to from
 * anywhere; and nothing may come back into them later:
 *
 * - No branch, jump table, pointer or call leads to the other four (branch_targets.h).
 * - A call is the last instruction that moves. In the stub it pushes the address behind the *original* call
 *   and jumps: the callee returns to the original code, so that exceptions, backtraces, profilers and longjmp
 *   see what they would see without us, and a thread that is inside the call when the probe is removed comes
 *   back to bytes that never changed. (The processor's return predictor misses once. With shadow stacks in
 *   force such a return would fault: see `calls` below.)
 * - What stands behind a jump or a return is reached from elsewhere, for instance by an exception: if that
 *   lies within the five bytes it must be padding, no-ops or breakpoints, which are never run. This is how functions
 *   shorter than five bytes are patched. Padding is only taken up to the next function.
 * - They lie in one page. Pages are written one after the other, and the writer may be killed.
 *
 * A function whose own code leads back to its first instruction would count every turn as a call: refused, as
 * for uprobes. The first instruction stays where it is, and the jump replaces what follows, if the next instruction
 * is always reached from it (instruction_only_computes()). A uprobe of another tool at the entry replaces one byte
 * by a breakpoint; at a hit the kernel executes the file's first instruction and continues behind it, whatever is in
 * memory there. Of a jump at the entry that would be the last bytes. ENDBR64 always stays, since indirect branches
 * must land on it.
 *
 * An instruction that faults does so in the stub. Who catches SIGSEGV and compares the place with a list of
 * its own instructions does not find it there; compilers make no such code, some virtual machines do.
 *
 * Fragments (NAME.cold), labels and resolvers are no functions: a request for them is refused before this.
 */
#ifndef TRACECTL_COLLECTOR_DISPLACE_DISPLACE_H
#define TRACECTL_COLLECTOR_DISPLACE_DISPLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/arch/displacement.h"
#include "image/arch/disasm.h"
#include "image/flow/flow_map.h"

/* Why a function is not patched. displace_refusal_text() puts each into words. */
enum displace_refusal {
    DISPLACE_OK,
    DISPLACE_NO_FUNCTION, /* a fragment, a label, a resolver: see plan_symbol_refusal() */
    DISPLACE_EMPTY,       /* no bytes in the file */
    DISPLACE_SHORT,       /* the next function, or the end of the code, comes before five bytes are full */
    DISPLACE_UNDECODABLE, /* no instruction, or one that the disassemblers do not agree on */
    DISPLACE_UNMOVABLE,   /* traps, system instructions, forms that mean something else elsewhere */
    DISPLACE_TARGET,      /* something leads into the patched bytes */
    DISPLACE_RETURN,      /* a call would return into the patched bytes */
    DISPLACE_BEHIND_JUMP, /* they have code behind a jump or a return */
    DISPLACE_CHANGES,     /* memory has others there than the file: FLOW_CHANGES */
    DISPLACE_LOOP,        /* a branch in the function leads back to its first instruction */
    DISPLACE_TWO_PAGES,   /* they lie in two pages, which cannot be written in one go */
    DISPLACE_REFUSALS,
};

/* A function as the image has it. */
struct displace_subject {
    const uint8_t *code;
    uint64_t address; /* link-time */
    size_t size;      /* of the function, bytes; instructions are taken from no further */
    size_t room; /* of `code`, up to the next function or the end of the code: padding is taken from here;
                    at least `size` */
};

/* Looks at one function of the image that `map` is of (flow_image_map() and branch_targets_mark()). On
 * DISPLACE_OK `*ret_displacement` is filled in. Whether it is a function that is called at all is the
 * caller's question. */
enum displace_refusal displace_function(struct disasm *disasm, const struct flow_map *map,
                                        const struct displace_subject *subject,
                                        struct displacement *ret_displacement);

/* A few lower-case words. */
const char *displace_refusal_text(enum displace_refusal refusal);

#endif
