/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One instruction of x86-64 moved to another address, doing there what it did here.
 *
 * What names a place by its distance is written anew: short branches become long ones, `loop` and `jrcxz`,
 * which have no long form, a short branch over a jump, operands relative to RIP get their new displacement. A
 * call becomes a push of the address behind the original and a jump (displace.h says why). Everything else is
 * copied.
 */
#ifndef TRACECTL_COLLECTOR_ARCH_RELOCATE_H
#define TRACECTL_COLLECTOR_ARCH_RELOCATE_H

#include <stdbool.h>

#include "collector/arch/machine_code.h"
#include "image/arch/disasm.h"

/* How many bytes a moved instruction has at most: `call *DISP(%rip)`, 17 for the push, 15, 8 for the address.
 */
#define RELOCATED_BYTES 40

/* Whether the instruction can be moved at all. */
bool relocate_can(const struct instruction *instruction);

/* Writes `instruction`, whose address is where it is loaded now, at the end of `code`. `code->error` is
 * -ERANGE where its new place is too far from what it refers to. */
void relocate(struct machine_code *code, const struct instruction *instruction);

#endif
