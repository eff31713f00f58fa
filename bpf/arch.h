/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the BPF programs know of the machine (x86-64): registers by their role, the thread control block, and
 * what a call does to the stack. All else in bpf/ is the same on every machine, but for struct pt_regs in
 * vmlinux.h. The collector's side is image/arch/registers.h.
 */
#ifndef TRACECTL_BPF_ARCH_H
#define TRACECTL_BPF_ARCH_H

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define CALL_LENGTH 5 /* bytes of a direct call */
#define CALL_PUSHES \
    8 /* bytes by which the stack pointer is lower when a call has been made: the return address */

#define FLAG_CARRY 0x1
#define FLAG_PARITY 0x4
#define FLAG_ZERO 0x40
#define FLAG_SIGN 0x80
#define FLAG_OVERFLOW 0x800

/* Numbers of system calls. */
#define CALL_FUTEX 202
#define CALL_RESTART 219
#define CALL_WORDS 8 /* of 64 numbers each, which the kernel keeps a bit for */

/* ------------------------------------------------------------------------------------------ registers */

static __always_inline __u64 stack_pointer(const struct pt_regs *ctx)
{
    return ctx->sp;
}

static __always_inline __u64 instruction_pointer(const struct pt_regs *ctx)
{
    return ctx->ip;
}

/* What a function has returned. */
static __always_inline __u64 result_of(const struct pt_regs *ctx)
{
    return ctx->ax;
}

/* Whether the last operation came to 0. */
static __always_inline bool was_zero(const struct pt_regs *ctx)
{
    return ctx->flags & FLAG_ZERO;
}

/* The first argument of a function. */
static __always_inline __u64 first_argument(const struct pt_regs *ctx)
{
    return ctx->di;
}

/* The arguments of a function, by their numbers from 1; [0] is 0. */
#define FUNCTION_ARGUMENTS 6
static __always_inline void read_arguments(const struct pt_regs *ctx, __u64 arguments[FUNCTION_ARGUMENTS + 1])
{
    /* One by one: of a choice between two the compiler makes a choice of where to read, which the verifier
     * does not take. */
    const volatile struct pt_regs *registers = ctx;

    arguments[0] = 0;
    arguments[1] = registers->di;
    arguments[2] = registers->si;
    arguments[3] = registers->dx;
    arguments[4] = registers->cx;
    arguments[5] = registers->r8;
    arguments[6] = registers->r9;
}

/* Number and arguments of the system call that a tracepoint has the registers of. */
static __always_inline __s64 read_system_call(const struct pt_regs *from, __u64 arguments[6])
{
    struct pt_regs registers;

    __builtin_memset(&registers, 0, sizeof(registers));
    bpf_probe_read_kernel(&registers, sizeof(registers), from);
    arguments[0] = registers.di;
    arguments[1] = registers.si;
    arguments[2] = registers.dx;
    arguments[3] = registers.r10;
    arguments[4] = registers.r8;
    arguments[5] = registers.r9;
    return (__s64)registers.orig_ax;
}

/* The number alone. */
static __always_inline __s64 system_call_of(const struct pt_regs *from)
{
    return (__s64)BPF_CORE_READ(from, orig_ax);
}

/* The address of a thread's control block. */
static __always_inline __u64 thread_block_of(const struct task_struct *task)
{
    return task->thread.fsbase;
}

/* ------------------------------------------------------------------------------------------ unwinding */

/* The registers of a thread in the order of DWARF: general ones, then the place. */
#define UNWIND_REGISTERS 17
#define USER_CS 0x33 /* __USER_CS */

/* In *ret_call the number of the system call that it is in, -1: it came into the kernel another way; in
 * *ret_native whether it was in code of 64 bits. */
static __always_inline long save_registers(const struct pt_regs *from, __u64 values[UNWIND_REGISTERS],
                                           __s64 *ret_call, __u64 *ret_native)
{
    struct pt_regs registers;
    long r = bpf_probe_read_kernel(&registers, sizeof(registers), from);

    if (r)
        return r;
    values[0] = registers.ax;
    values[1] = registers.dx;
    values[2] = registers.cx;
    values[3] = registers.bx;
    values[4] = registers.si;
    values[5] = registers.di;
    values[6] = registers.bp;
    values[7] = registers.sp;
    values[8] = registers.r8;
    values[9] = registers.r9;
    values[10] = registers.r10;
    values[11] = registers.r11;
    values[12] = registers.r12;
    values[13] = registers.r13;
    values[14] = registers.r14;
    values[15] = registers.r15;
    values[16] = registers.ip;
    *ret_call = (__s64)registers.orig_ax;
    *ret_native = (registers.cs & 0xffff) == USER_CS;
    return 0;
}

/* ------------------------------------------------------------------------------------------ Go */

/* What a hit in code that Go compiled needs of the registers, copied: the verifier does not follow pointers
 * into them. */
struct go_registers {
    __u64 arguments[6]; /* in Go's ABIInternal (since go 1.17); the first is also the result */
    __u64 g;            /* the runtime's struct g of the goroutine */
    __u64 sp, frame, ip, flags;
};

static __always_inline struct go_registers go_registers_of(const struct pt_regs *ctx)
{
    return (struct go_registers){{ctx->ax, ctx->bx, ctx->cx, ctx->di, ctx->si, ctx->r8},
                                 ctx->r14,
                                 ctx->sp,
                                 ctx->bp,
                                 ctx->ip,
                                 ctx->flags};
}

/* Where the frame that `frame` points to has the address that its function returns to. */
static __always_inline __u64 caller_slot(__u64 frame)
{
    return frame + CALL_PUSHES;
}

/* Whether the branch of a check for room on the stack is taken: the function will begin again. */
static __always_inline bool stack_check_is_taken(__u64 flags)
{
    return flags & (FLAG_CARRY | FLAG_ZERO);
}

/* Whether a conditional branch is taken, of instruction_condition_code() of image/arch/operands.h. */
static __always_inline bool branch_is_taken(__u8 condition, __u64 flags)
{
    bool less = !(flags & FLAG_SIGN) != !(flags & FLAG_OVERFLOW), holds = false;

    switch (condition >> 1) {
    case 0:
        holds = flags & FLAG_OVERFLOW;
        break;
    case 1:
        holds = flags & FLAG_CARRY;
        break;
    case 2:
        holds = flags & FLAG_ZERO;
        break;
    case 3:
        holds = flags & (FLAG_CARRY | FLAG_ZERO);
        break;
    case 4:
        holds = flags & FLAG_SIGN;
        break;
    case 5:
        holds = flags & FLAG_PARITY;
        break;
    case 6:
        holds = less;
        break;
    case 7:
        holds = less || flags & FLAG_ZERO;
        break;
    }
    return condition & 1 ? !holds : holds;
}

/* The address that an operand [base + index * scale + displacement] names; registers as in machine code. */
static __always_inline __u64 operand_address(const struct pt_regs *ctx, __u32 base, __u32 index, __u8 scale,
                                             __s32 displacement)
{
    __u64 registers[18] = {ctx->ax,  ctx->cx,  ctx->dx,  ctx->bx,  ctx->sp,  ctx->bp,
                           ctx->si,  ctx->di,  ctx->r8,  ctx->r9,  ctx->r10, ctx->r11,
                           ctx->r12, ctx->r13, ctx->r14, ctx->r15, 0,        0};

    if (base > 17)
        base = 17;
    if (index > 17)
        index = 17;
    return registers[base] + registers[index] * scale + (__s64)displacement;
}

#endif
