/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an instruction does to the stack pointer, and where in memory it reaches. */
#ifndef TRACECTL_IMAGE_FLOW_FLOW_STACK_H
#define TRACECTL_IMAGE_FLOW_FLOW_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "image/arch/disasm.h"

enum flow_register {
    FLOW_RAX = 0,
    FLOW_RCX = 1,
    FLOW_RSP = 4,
    FLOW_RBP = 5,
    FLOW_RSI = 6,
    FLOW_RDI = 7,
    FLOW_R8 = 8,
    FLOW_R14 = 14,
    FLOW_RIP = 16,
    FLOW_NO_REGISTER = 17,
};

enum flow_stack {
    FLOW_STACK_KEPT,  /* rsp is not written */
    FLOW_STACK_MOVED, /* a known number of bytes is added to it */
    FLOW_STACK_LOST,  /* it may have any value afterwards */
};

/* The effect on rsp where the instruction behind this one is reached: a call has returned by then. What is
 * not known to leave rsp alone counts as lost. `*ret_bytes` is what is added (a push: -8), 0 unless
 * FLOW_STACK_MOVED. */
enum flow_stack flow_stack_effect(const struct instruction *instruction, int64_t *ret_bytes);

struct flow_memory {
    enum flow_register base, index; /* numbered as in the machine code, 0 to 15, or as above */
    uint8_t scale;                  /* 1, 2, 4 or 8 */
    int32_t displacement;
};

/* The memory operand that a ModRM byte names; false if there is none, or in a VEX instruction. A `lea` or a
 * no-op has one too and reaches for nothing. */
bool flow_memory_operand(const struct instruction *instruction, struct flow_memory *ret_memory);

/* The register operands of an instruction with ModRM, REX taken into account. */
enum flow_register flow_reg_operand(const struct instruction *instruction);
enum flow_register
flow_rm_operand(const struct instruction *instruction); /* FLOW_NO_REGISTER: it is memory */

#endif
