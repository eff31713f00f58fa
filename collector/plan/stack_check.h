/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Checks for room on a split or growing stack: what Go's linker puts before every function that may need
 * more.
 *
 *     entry:  cmp 16(%r14), %rsp        or: lea -0x80(%rsp), %r12; cmp 16(%r14), %r12
 *             jbe more                  or: mov %fs:-8, %rcx; cmp 16(%rcx), %rsp
 *             ...
 *     more:   mov %rax, 8(%rsp)         arguments in registers are saved
 *             call runtime.morestack
 *             mov 8(%rsp), %rax
 *             jmp entry
 *
 * The function begins again afterwards, on another stack. That is recognised by its shape, not by names, so
 * stripped binaries and other runtimes with this scheme are no different.
 */
#ifndef TRACECTL_COLLECTOR_PLAN_STACK_CHECK_H
#define TRACECTL_COLLECTOR_PLAN_STACK_CHECK_H

#include <stdbool.h>

#include "image/arch/disasm.h"
#include "image/flow/flow_map.h"

/* Whether `branch`, a conditional one of the function that begins at `entry` and has `size` bytes, leads to
 * such a piece, and no other way inside the function leads back to `entry` than the jump at the end of the
 * piece. Then what lies behind the branch runs once for every call. */
bool stack_check_is(const struct flow_map *map, uint64_t entry, size_t size,
                    const struct instruction *branch);

#endif
