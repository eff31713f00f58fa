/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an instruction does to the stack pointer, and where in memory it reaches. */
#ifndef TRACECTL_IMAGE_ARCH_OPERANDS_H
#define TRACECTL_IMAGE_ARCH_OPERANDS_H

#include <stdbool.h>
#include <stdint.h>

#include "image/arch/disasm.h"
#include "image/arch/registers.h"

enum stack_effect {
    STACK_KEPT,  /* rsp is not written */
    STACK_MOVED, /* a known number of bytes is added to it */
    STACK_LOST,  /* it may have any value afterwards */
};

/* The effect on rsp where the instruction behind this one is reached: a call has returned by then. What is
 * not known to leave rsp alone counts as lost. `*ret_bytes` is what is added (a push: -8), 0 unless
 * STACK_MOVED. */
enum stack_effect instruction_stack_effect(const struct instruction *instruction, int64_t *ret_bytes);

struct memory_operand {
    enum machine_register base, index; /* numbered as in the machine code, 0 to 15, or as above */
    uint8_t scale;                     /* 1, 2, 4 or 8 */
    int32_t displacement;
};

/* The memory operand that a ModRM byte names; false if there is none, or in a VEX instruction. A `lea` or a
 * no-op has one too and reaches for nothing. */
bool instruction_memory(const struct instruction *instruction, struct memory_operand *ret_memory);

/* The register operands of an instruction with ModRM, REX taken into account. */
enum machine_register flow_reg_operand(const struct instruction *instruction);
enum machine_register
flow_rm_operand(const struct instruction *instruction); /* REGISTER_NONE: it is memory */

#endif
