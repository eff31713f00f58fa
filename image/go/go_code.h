/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For image/go_*.c and collector/go/: the instructions of one function, and questions about them that Go's
 * code makes easy to answer: it is compiled by one compiler, its functions are in one piece, and all of its
 * bytes are instructions.
 */
#ifndef TRACECTL_IMAGE_GO_GO_CODE_H
#define TRACECTL_IMAGE_GO_GO_CODE_H

#include "image/arch/disasm.h"
#include "image/arch/operands.h"
#include "image/elf/elf_image.h"

/* The goroutine (struct g) in functions that Go compiled, since go 1.17. */
#define GO_G_REGISTER REGISTER_GO_G

enum { GO_REX_W = 8 };

struct go_code {
    struct instruction *items;
    size_t count, capacity;
};

/* Reads the `size` bytes at `address`, up to what is not an instruction; what the array held before is gone,
 * its memory is used again. 0 or -ENOMEM. */
int go_code_read(struct elf_image *image, uint64_t address, uint64_t size, struct go_code *code);
void go_code_release(struct go_code *code);

/* The index of the instruction at `address`; code->count: there is none. */
size_t go_code_find(const struct go_code *code, uint64_t address);

/* Whether it is `mov REG, [memory]`, of 64 bits if `wide`, otherwise of 32. */
bool go_is_load(const struct instruction *instruction, bool wide, enum machine_register *ret_register,
                struct memory_operand *ret_memory);

/* Whether it is `mov [memory], REG`. */
bool go_is_store(const struct instruction *instruction, bool wide, enum machine_register *ret_register,
                 struct memory_operand *ret_memory);

/* Whether it is `lea REG, [memory]`. */
bool go_is_lea(const struct instruction *instruction, enum machine_register *ret_register,
               struct memory_operand *ret_memory);

/* The address that a `lea REG, [rip + X]` makes; 0: it is another instruction. */
uint64_t go_lea_target(const struct instruction *instruction, enum machine_register *ret_register);

/* Whether memory is [base + displacement] alone. */
bool go_is_field(const struct memory_operand *memory);

/* The number of `width` bytes that the instruction ends in, sign-extended. */
int64_t go_immediate(const struct instruction *instruction, size_t width);

/* Whether the instruction may write `reg`. */
bool go_may_write(const struct instruction *instruction, uint8_t reg);

/* The operation of the opcode groups 80 to 83, C0 to D3, F6, FE and FF. */
static inline unsigned go_group(const struct instruction *instruction)
{
    return (instruction->modrm >> 3) & 7;
}

#endif
