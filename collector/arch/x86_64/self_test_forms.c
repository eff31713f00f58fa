/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/arch/self_test_forms.h"

#define FORM(name, body) \
    ".hidden " name "\n.globl " name "\n.type " name ", @function\n" name \
    ":\n" \
    ".rept 7\n" body "\n.balign 16, 0xcc\n.endr\n.size " name ", . - " name "\n"

_Static_assert(SELF_TEST_COPIES == 7, "the count of .rept");

__asm__(".pushsection .text\n.balign 16\n" FORM("self_test_push", "push %rbp\npop %rbp\nret")
            FORM("self_test_nop", "nop\nret") FORM("self_test_jump", "jmp 1f\n1: ret")
                FORM("self_test_branch", "jz 1f\n1: ret") FORM("self_test_call", "call 1f\nret\n1: ret")
                    FORM("self_test_nop5", ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\nret")
                        FORM("self_test_mov", "mov %rsp, %rax\nret")
                            FORM("self_test_sub", "sub $8, %rsp\nadd $8, %rsp\nret")
                                FORM("self_test_ret", "ret") ".popsection\n");

extern const char self_test_push[], self_test_nop[], self_test_jump[], self_test_branch[], self_test_call[],
    self_test_nop5[], self_test_mov[], self_test_sub[], self_test_ret[];

const char *self_test_form_code(enum self_test_form form)
{
    static const char *const forms[] = {
        [FORM_PUSH] = self_test_push,     [FORM_NOP] = self_test_nop,   [FORM_JUMP] = self_test_jump,
        [FORM_BRANCH] = self_test_branch, [FORM_CALL] = self_test_call, [FORM_NOP5] = self_test_nop5,
        [FORM_MOV] = self_test_mov,       [FORM_SUB] = self_test_sub,   [FORM_RET] = self_test_ret,
    };

    return forms[form];
}
