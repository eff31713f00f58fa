/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an encoding of x86-64 has besides its length: struct instruction keeps it for those who know what it
 * means. */
#ifndef TRACECTL_IMAGE_ARCH_X86_64_FORM_H
#define TRACECTL_IMAGE_ARCH_X86_64_FORM_H

#include <string.h>

#include "image/arch/disasm.h"
#include "image/arch/registers.h"

enum { REX_B = 1, REX_X = 2, REX_R = 4, REX_W = 8 };

struct form {
    bool vex : 1;          /* VEX, EVEX or XOP; the opcode is not given then */
    bool segment : 1;      /* prefix 26, 2E, 36 or 3E; FS and GS are not counted */
    bool operand_size : 1; /* prefix 66 */
    bool address_size : 1; /* prefix 67 */
    bool repeat : 1;       /* prefix F2 or F3 */
    uint8_t rex;           /* 0 when there is none */
    uint8_t opcode[2]; /* the first byte of the opcode; its second one when the first is 0F, otherwise 0 */
    uint8_t modrm;    /* the byte behind those: ModRM if the opcode takes one; 0 where the instruction ends */
    uint8_t modrm_at; /* where in `code` that byte is; `length` where the instruction ends */
};
_Static_assert(sizeof(struct form) <= sizeof(((struct instruction *)0)->form), "form");

static inline struct form form_of(const struct instruction *instruction)
{
    struct form form;

    memcpy(&form, instruction->form, sizeof(form));
    return form;
}

/* The middle field of ModRM: a register, or which operation of a group. */
static inline uint8_t form_group(const struct form *form)
{
    return (form->modrm >> 3) & 7;
}

/* Whether the form has that opcode of one byte. */
static inline bool form_is(const struct form *form, uint8_t opcode)
{
    return !form->vex && form->opcode[0] == opcode;
}

/* The same of two bytes, the first of which is 0F. */
static inline bool form_is_0f(const struct form *form, uint8_t opcode)
{
    return form_is(form, 0x0f) && form->opcode[1] == opcode;
}

/* The register that ModRM.reg names. */
static inline enum machine_register form_reg(const struct form *form)
{
    return (enum machine_register)(form_group(form) | (form->rex & REX_R ? 8 : 0));
}

/* The one that ModRM.rm names; REGISTER_NONE: it is memory. */
static inline enum machine_register form_rm(const struct form *form)
{
    if (form->modrm < 0xc0)
        return REGISTER_NONE;
    return (enum machine_register)((form->modrm & 7) | (form->rex & REX_B ? 8 : 0));
}

/* The one in the low bits of an opcode of one byte. */
static inline enum machine_register form_opcode_register(const struct form *form)
{
    return (enum machine_register)((form->opcode[0] & 7) | (form->rex & REX_B ? 8 : 0));
}

/* Whether the opcode takes a ModRM byte, and there is one. */
bool form_has_modrm(const struct form *form, const struct instruction *instruction);

/* The number that the instruction ends in, of 1 or 4 bytes, extended with its sign. */
int64_t form_number(const struct instruction *instruction, size_t bytes);

#endif
