/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which registers an instruction writes, and what it does besides. */
#ifndef TRACECTL_IMAGE_ARCH_EFFECTS_H
#define TRACECTL_IMAGE_ARCH_EFFECTS_H

#include "image/arch/disasm.h"
#include "image/arch/registers.h"

/* The general register that the instruction writes, beside flags and memory: REGISTER_NONE, or -EILSEQ where
 * its effect is not known here. */
int instruction_written_register(const struct instruction *instruction);

/* Whether it may write `reg`. What is not known here may. */
bool instruction_may_write(const struct instruction *instruction, enum machine_register reg);

/* Whether it writes all of `reg`, from memory, another register or a number: the value before is gone. */
bool instruction_replaces(const struct instruction *instruction, enum machine_register reg);

/* Whether a function that is called by the C calling convention keeps the register. */
bool register_is_kept(enum machine_register reg);

/* Its number in DWARF. */
unsigned register_in_dwarf(enum machine_register reg);

/* ---------------------------------------------------------------------------------------------- atomics */

/* A locked compare-and-exchange; a locked addition that gives back what was there before. */
bool instruction_compares_and_exchanges(const struct instruction *instruction);
bool instruction_exchanges_and_adds(const struct instruction *instruction);

/* Whether one of those writes `reg`, of which its memory operand may be made. */
bool instruction_exchange_writes(const struct instruction *instruction, enum machine_register reg);

/* Whether it reads and changes memory as a whole, with a prefix that says so or without one. */
bool instruction_is_atomic(const struct instruction *instruction);

/* ---------------------------------------------------------------------------------------------- the stack */

bool instruction_pops(const struct instruction *instruction);

/* It exchanges the stack pointer with another register or with memory. */
bool instruction_exchanges_stack(const struct instruction *instruction);

/* It sets the stack pointer to what it was before the frame was made, by the frame pointer. */
bool instruction_leaves_frame(const struct instruction *instruction);

/* ---------------------------------------------------------------------------------------------- others */

/* It works on registers and numbers, no value makes it fault, and the next instruction follows: moves, arithmetic but
 * division, no-ops; also a push of a register, and what reads the image's own data. False: it may do more. */
bool instruction_only_computes(const struct instruction *instruction);

bool instruction_is_system_call(const struct instruction *instruction);

/* It may run for long, or continue elsewhere than its kind says: repeated string operations, transactions. */
bool instruction_may_stay(const struct instruction *instruction);

#endif
