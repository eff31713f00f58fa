/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which registers a function overwrites before it reads them, and whether it does so with the flags: what a
 * stub in front of it need not save.
 *
 * Compilers and people may rely on more than the calling convention says: with gcc's -fipa-ra a caller keeps
 * values in registers that a callee does not touch. A register that the callee has overwritten on the only
 * way through its first instructions is nobody's, whatever was agreed upon. (An instruction among them that
 * faults shows a signal handler other values there than it would have without us.)
 */
#ifndef TRACECTL_COLLECTOR_ARCH_LIVENESS_H
#define TRACECTL_COLLECTOR_ARCH_LIVENESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/arch/disasm.h"

/* The registers that a callee need not keep: rax, rcx, rdx, rsi, rdi, r8 to r11. */
#define LIVENESS_SCRATCH 0x0fc7u

struct liveness {
    uint16_t dead;   /* of LIVENESS_SCRATCH, a bit each: overwritten in full before any of it is read */
    bool flags_dead; /* OF, SF, ZF, AF, PF and CF are */
};

/* Follows the code from its first instruction to its first branch, call, return or instruction whose operands
 * are not known here. The disassemblers must agree on the length of each. */
struct liveness liveness_look(struct disasm *disasm, const uint8_t *code, size_t size);

#endif
