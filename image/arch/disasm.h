/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Instructions of x86-64: Capstone behind one header. A struct disasm must not be shared between threads. */
#ifndef TRACECTL_IMAGE_ARCH_DISASM_H
#define TRACECTL_IMAGE_ARCH_DISASM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

struct disasm;

enum instruction_kind {
    INSTRUCTION_OTHER,
    INSTRUCTION_ENDBR,
    INSTRUCTION_NOP,    /* 90 and 0F 1F forms of any length with any prefixes; not pause, not xchg %r8 */
    INSTRUCTION_PUSH,   /* push r64 */
    INSTRUCTION_BRANCH, /* direct and conditional: jcc, jrcxz, loop */
    INSTRUCTION_JUMP,   /* jmp rel8/rel32 */
    INSTRUCTION_CALL,   /* call rel32 */
    INSTRUCTION_JUMP_INDIRECT,
    INSTRUCTION_CALL_INDIRECT,
    INSTRUCTION_RETURN,
    INSTRUCTION_TRAP,       /* int3, int n, int1, ud0, ud1, ud2, hlt */
    INSTRUCTION_PRIVILEGED, /* in, out, cli, sti, iret and the system groups behind 0F */
};

struct instruction {
    uint64_t address;
    uint64_t target;     /* of BRANCH, JUMP and CALL; 0 otherwise */
    const uint8_t *code; /* the caller's bytes */
    uint8_t length;      /* bytes, 1 to 15 */
    bool lock;           /* prefix F0 */
    bool segment;        /* prefix 26, 2E, 36 or 3E; FS and GS are not counted */
    bool operand_size;   /* prefix 66 */
    bool address_size;   /* prefix 67 */
    bool repeat;         /* prefix F2 or F3 */
    bool vex;            /* VEX, EVEX or XOP; the opcode is not given then */
    uint8_t rex;         /* 0 when there is none */
    uint8_t opcode[2];   /* the first byte of the opcode; its second one when the first is 0F, otherwise 0 */
    uint8_t modrm;    /* the byte behind those: ModRM if the opcode takes one; 0 where the instruction ends */
    uint8_t modrm_at; /* where in `code` that byte is; `length` where the instruction ends */
    enum instruction_kind kind;
};

int disasm_new(struct disasm **ret_disasm, struct error *err);
void disasm_free(struct disasm *disasm);

DEFINE_CLEANUP(cleanup_disasm, struct disasm *, disasm_free)
#define AUTO_DISASM CLEANUP(cleanup_disasm)

/* Decodes the instruction at `code`, of which `size` bytes may be read and which is loaded at `address`.
 * -EILSEQ: not an instruction, or one that goes on beyond `size`. */
int disasm_decode(struct disasm *disasm, const uint8_t *code, size_t size, uint64_t address,
                  struct instruction *ret_instruction);

/* The same from flow_length(): twenty times as fast and good enough to find branches and calls with, but it
 * knows less well what is not an instruction. Never the only judge of a site. */
int disasm_skim(const uint8_t *code, size_t size, uint64_t address, struct instruction *ret_instruction);

/* Whether both know the instruction and agree on its length: for code that is to be changed. */
bool disasm_agree(struct disasm *disasm, const uint8_t *code, size_t size, uint64_t address,
                  struct instruction *ret_instruction);

#endif
