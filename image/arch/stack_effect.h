/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an instruction does to the stack pointer. */
#ifndef TRACECTL_IMAGE_ARCH_STACK_EFFECT_H
#define TRACECTL_IMAGE_ARCH_STACK_EFFECT_H

#include "image/arch/disasm.h"

enum stack_effect {
    STACK_KEPT,  /* the stack pointer is not written */
    STACK_MOVED, /* a known number of bytes is added to it */
    STACK_LOST,  /* it may have any value afterwards */
};

/* The effect where the instruction behind this one is reached: a call has returned by then. What is not known
 * to keep the stack pointer counts as lost. `*ret_bytes` is what is added (a push: -8), 0 unless STACK_MOVED.
 */
enum stack_effect instruction_stack_effect(const struct instruction *instruction, int64_t *ret_bytes);

#endif
