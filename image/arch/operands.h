/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an instruction moves, and between what: registers, memory and numbers. Each of these knows the forms
 * that compilers use; false means that it is another instruction, or a form that is not known here. Outputs
 * are set when it is true.
 */
#ifndef TRACECTL_IMAGE_ARCH_OPERANDS_H
#define TRACECTL_IMAGE_ARCH_OPERANDS_H

#include "image/arch/disasm.h"
#include "image/arch/registers.h"

/* base + index * scale + displacement */
struct memory_operand {
    enum machine_register base, index; /* REGISTER_NONE: there is none */
    uint8_t scale;                     /* 1, 2, 4 or 8 */
    int32_t displacement;
};

/* The memory operand that the instruction has; not of vector instructions. One that only makes an address, or
 * is a no-op, has one too and does not access it. */
bool instruction_memory(const struct instruction *instruction, struct memory_operand *ret_memory);

/* The same where it is at a fixed distance from the instruction: its address. */
bool instruction_fixed_memory(const struct instruction *instruction, uint64_t *ret_address);

/* A number in the instruction that may be an address of a program at a fixed place. */
bool instruction_absolute_address(const struct instruction *instruction, uint64_t *ret_address);

/* ---------------------------------------------------------------------------------------------- moves */

/* A copy between general registers, of any width. */
bool instruction_copies(const struct instruction *instruction, enum machine_register *ret_from,
                        enum machine_register *ret_to);

/* A load of a general register from memory or a store to it, of any width from 16 bits on. */
bool instruction_accesses(const struct instruction *instruction, enum machine_register *ret_register,
                          struct memory_operand *ret_memory);

/* A load, of 64 bits if `wide`, otherwise of 32. */
bool instruction_loads(const struct instruction *instruction, bool wide, enum machine_register *ret_register,
                       struct memory_operand *ret_memory);

/* A store of such a width, or of one byte. */
bool instruction_stores(const struct instruction *instruction, bool wide, enum machine_register *ret_register,
                        struct memory_operand *ret_memory);
bool instruction_stores_byte(const struct instruction *instruction, enum machine_register *ret_register,
                             struct memory_operand *ret_memory);

/* A number is stored in a word of 64 bits. */
bool instruction_stores_number(const struct instruction *instruction, struct memory_operand *ret_memory,
                               int64_t *ret_number);

/* A number is loaded into a register. */
bool instruction_loads_number(const struct instruction *instruction, enum machine_register *ret_register,
                              int64_t *ret_number);

/* The address of memory is put into a register; of memory at a fixed distance, which address that is. */
bool instruction_makes_address(const struct instruction *instruction, enum machine_register *ret_register,
                               struct memory_operand *ret_memory);
bool instruction_makes_fixed_address(const struct instruction *instruction,
                                     enum machine_register *ret_register, uint64_t *ret_address);

/* A register is added to another one. */
bool instruction_adds(const struct instruction *instruction, enum machine_register *ret_from,
                      enum machine_register *ret_to);

/* The register that an indirect jump or call goes through. */
bool instruction_goes_through(const struct instruction *instruction, enum machine_register *ret_register);

/* ---------------------------------------------------------------------------------------------- comparisons
 */

/* A number is compared with a register or, of `size` bytes (1 or 4), with memory. */
bool instruction_compares_register(const struct instruction *instruction, unsigned size,
                                   enum machine_register *ret_register, int64_t *ret_number);
bool instruction_compares_memory(const struct instruction *instruction, unsigned size,
                                 struct memory_operand *ret_memory, int64_t *ret_number);

/* A register is compared with memory of 32 or 64 bits. */
bool instruction_compares_with(const struct instruction *instruction, struct memory_operand *ret_memory);

/* It compares operands, one of which may be memory, and writes nothing but flags. */
bool instruction_only_compares(const struct instruction *instruction);

/* It tests bits of a register (with itself: whether it is 0). */
bool instruction_tests(const struct instruction *instruction);

/* 1 is added to memory of 32 bits or, if `wide`, of 64. */
bool instruction_increments(const struct instruction *instruction, bool wide,
                            struct memory_operand *ret_memory);

/* When a conditional branch is taken: after a comparison, or a test of bits. */
enum branch_condition {
    BRANCH_IF_ZERO, /* or equal */
    BRANCH_IF_NOT_ZERO,
    BRANCH_IF_ABOVE, /* without sign */
    BRANCH_IF_NOT_ABOVE,
    BRANCH_IF_OTHER,
};
enum branch_condition instruction_condition(const struct instruction *branch);

/* The condition as the instruction set numbers it, for bpf/arch.h. */
uint8_t instruction_condition_code(const struct instruction *branch);

#endif
