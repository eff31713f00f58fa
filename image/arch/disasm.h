/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Instructions: where they end, what kind they are and where they lead. What else is asked of them is in
 * operands.h, stack_effect.h, effects.h and switch_table.h: facts, never encodings. A struct disasm must not
 * be shared between threads.
 */
#ifndef TRACECTL_IMAGE_ARCH_DISASM_H
#define TRACECTL_IMAGE_ARCH_DISASM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct error;

struct disasm;

#define INSTRUCTION_BYTES 15 /* at most */

enum instruction_kind {
    INSTRUCTION_OTHER,
    INSTRUCTION_ENDBR,  /* what indirect branches must land on */
    INSTRUCTION_NOP,    /* of any length, and made to be one: not pause */
    INSTRUCTION_PUSH,   /* of a general register */
    INSTRUCTION_BRANCH, /* direct and conditional */
    INSTRUCTION_JUMP,   /* direct */
    INSTRUCTION_CALL,   /* direct */
    INSTRUCTION_JUMP_INDIRECT,
    INSTRUCTION_CALL_INDIRECT,
    INSTRUCTION_RETURN,
    INSTRUCTION_TRAP,       /* breakpoints, software interrupts, what is undefined, hlt */
    INSTRUCTION_PRIVILEGED, /* of the kernel, or into it: system calls too */
};

struct instruction {
    uint64_t address;
    uint64_t target;     /* of BRANCH, JUMP and CALL; 0 otherwise */
    const uint8_t *code; /* the caller's bytes */
    uint8_t length;      /* bytes, up to INSTRUCTION_BYTES */
    bool locked;         /* it changes memory as one operation, and says so (prefix LOCK) */
    uint8_t form[8];     /* of the encoding, for image/arch/ only */
    enum instruction_kind kind;
};

int disasm_new(struct disasm **ret_disasm, struct error *err);
void disasm_free(struct disasm *disasm);

DEFINE_CLEANUP(cleanup_disasm, struct disasm *, disasm_free)
#define AUTO_DISASM CLEANUP(cleanup_disasm)

/* Decodes the instruction at `code`, of which `size` bytes may be read and which is loaded at `address`.
 * -EILSEQ: not an instruction, or one that continues beyond `size`. */
int disasm_decode(struct disasm *disasm, const uint8_t *code, size_t size, uint64_t address,
                  struct instruction *ret_instruction);

/* The same from tables of lengths: twenty times as fast and good enough to find branches and calls with, but
 * it knows less well what is not an instruction. Never the only judge of a site. */
int disasm_skim(const uint8_t *code, size_t size, uint64_t address, struct instruction *ret_instruction);

/* Whether both know the instruction and agree on its length: for code that is to be changed. */
bool disasm_agree(struct disasm *disasm, const uint8_t *code, size_t size, uint64_t address,
                  struct instruction *ret_instruction);

static inline bool instruction_is_call(const struct instruction *instruction)
{
    return instruction->kind == INSTRUCTION_CALL || instruction->kind == INSTRUCTION_CALL_INDIRECT;
}

/* Jumps, conditional ones aside, and returns: the instruction behind is never reached from this one. */
static inline bool instruction_leaves(const struct instruction *instruction)
{
    return instruction->kind == INSTRUCTION_JUMP || instruction->kind == INSTRUCTION_JUMP_INDIRECT ||
           instruction->kind == INSTRUCTION_RETURN;
}

#endif
