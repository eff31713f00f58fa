/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For image/go_*.c and collector/go/: the instructions of one function, and questions about them that Go's
 * code makes easy to answer: it is compiled by one compiler, its functions are in one piece, and all of its
 * bytes are instructions.
 */
#ifndef TRACECTL_IMAGE_GO_GO_CODE_H
#define TRACECTL_IMAGE_GO_GO_CODE_H

#include "image/arch/operands.h"
#include "image/elf/elf_image.h"

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

/* Whether memory is [base + displacement] alone. */
bool go_is_field(const struct memory_operand *memory);

#endif
