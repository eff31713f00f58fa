/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Registers, numbered as in machine code, and those that have a role. */
#ifndef TRACECTL_IMAGE_ARCH_REGISTERS_H
#define TRACECTL_IMAGE_ARCH_REGISTERS_H

#if defined(__x86_64__)
#define MACHINE_REGISTERS 16 /* general ones: 0 to 15 */
enum machine_register {
    REGISTER_STACK = 4,         /* rsp */
    REGISTER_FRAME = 5,         /* rbp */
    REGISTER_CALL_NUMBER = 0,   /* rax: which system call is made */
    REGISTER_ARGUMENT_1 = 7,    /* rdi: of functions and system calls */
    REGISTER_ARGUMENT_2 = 6,    /* rsi */
    REGISTER_ARGUMENT_3 = 2,    /* rdx */
    REGISTER_ARGUMENT_4 = 1,    /* rcx, of functions only */
    REGISTER_ARGUMENT_5 = 8,    /* r8 */
    REGISTER_ARGUMENT_6 = 9,    /* r9 */
    REGISTER_GO_ARGUMENT_1 = 0, /* rax: Go's ABIInternal, since go 1.17 */
    REGISTER_GO_ARGUMENT_2 = 3, /* rbx */
    REGISTER_GO_ARGUMENT_3 = 1, /* rcx */
    REGISTER_GO_ARGUMENT_4 = 7, /* rdi */
    REGISTER_GO_ARGUMENT_5 = 6, /* rsi */
    REGISTER_GO_ARGUMENT_6 = 8, /* r8 */
    REGISTER_GO_G = 14,         /* r14: the goroutine (struct g) in functions that Go compiled */
    REGISTER_PC = 16,           /* rip, as the base of an operand */
    REGISTER_NONE = 17,
};

/* In DWARF (System V ABI for AMD64, figure 3.36). */
#define DWARF_STACK_REGISTER 7
#define DWARF_RETURN_COLUMN 16 /* behind the general registers; what a call fills in */
/* A bit for each register that calls keep: rbx, rbp, r12 to r15. */
#define DWARF_KEPT_REGISTERS (1u << 3 | 1u << 6 | 0xfu << 12)
#define CALL_PUSHES 8 /* bytes by which a call lowers the stack pointer: the return address */
#else
#error "image/arch/ has no folder for this instruction set"
#endif

#endif
