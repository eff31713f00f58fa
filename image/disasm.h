/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Instructions of x86-64: Capstone behind one header. A struct disasm must not be shared between threads. */
#ifndef TRACECTL_IMAGE_DISASM_H
#define TRACECTL_IMAGE_DISASM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

struct disasm;

enum instruction_kind {
    INSTRUCTION_OTHER,
    INSTRUCTION_ENDBR,
    INSTRUCTION_NOP,    /* any length, any prefixes: nop, nop r/m; not pause */
    INSTRUCTION_PUSH,   /* push r64, no prefix but REX.B */
    INSTRUCTION_BRANCH, /* jcc, jrcxz, loop: direct and conditional */
    INSTRUCTION_JUMP,   /* jmp rel8/rel32 */
    INSTRUCTION_CALL,   /* call rel32 */
    INSTRUCTION_JUMP_INDIRECT,
    INSTRUCTION_CALL_INDIRECT,
    INSTRUCTION_RETURN,     /* ret, ret imm16, retf, iret */
    INSTRUCTION_TRAP,       /* int3, int n, int1, ud0/1/2, hlt */
    INSTRUCTION_PRIVILEGED, /* faults in user space, or kernel uprobes cannot step it: in, out, cli, ... */
};

struct instruction {
    uint64_t address;
    uint64_t target;         /* of BRANCH, JUMP and CALL; 0 otherwise */
    uint8_t length;          /* bytes, 1 to 15 */
    uint8_t prefixes_length; /* legacy prefixes, REX not counted */
    bool lock;               /* F0 */
    bool segment;            /* 26, 2E, 36, 3E: those that kernel uprobes refuse; FS and GS are not counted */
    bool operand_size;       /* 66 */
    uint8_t rex;             /* 0 when there is none */
    bool vex;                /* VEX, EVEX or XOP: then `opcode` is the byte behind that prefix */
    uint8_t opcode[2];       /* the first opcode byte; the second one when that is 0F, otherwise 0 */
    uint8_t modrm;           /* 0 when the instruction has none */
    enum instruction_kind kind;
    bool writes_rsp; /* changes the stack pointer, explicitly or not */
};

int disasm_new(struct disasm **ret_disasm, struct error *err);
void disasm_free(struct disasm *disasm);

DEFINE_CLEANUP(cleanup_disasm, struct disasm *, disasm_free)
#define AUTO_DISASM CLEANUP(cleanup_disasm)

/* Decodes the instruction at `code`, of which `size` bytes may be read and which is loaded at `address`.
 * -EILSEQ: not an instruction, or one that goes on beyond `size`. */
int disasm_decode(struct disasm *disasm, const uint8_t *code, size_t size, uint64_t address,
                  struct instruction *ret_instruction);

#endif
