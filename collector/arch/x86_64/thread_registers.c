/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/arch/thread_registers.h"

#include <string.h>
#include <sys/syscall.h>

#define USER_CS 0x33       /* __USER_CS: 64-bit code */
#define FLAG_TRAP 0x100ull /* a trap after each instruction */
#define NO_CALL UINT64_MAX /* the kernel shall not restart what it thinks is a call */

static const uint8_t system_call[SYSTEM_CALL_BYTES] = {0x0f, 0x05};
static const uint8_t call_and_return[] = {0x0f, 0x05, 0xc3};
/* mov $15, %rax; syscall, and mov $15, %eax; syscall */
static const uint8_t sigreturn_long[] = {0x48, 0xc7, 0xc0, SYS_rt_sigreturn, 0, 0, 0, 0x0f, 0x05};
static const uint8_t sigreturn_short[] = {0xb8, SYS_rt_sigreturn, 0, 0, 0, 0x0f, 0x05};

_Static_assert(sizeof(sigreturn_long) == CODE_SIGRETURN_BYTES, "the longest form");

uint64_t registers_pc(const struct user_regs_struct *registers)
{
    return registers->rip;
}

void registers_set_pc(struct user_regs_struct *registers, uint64_t pc)
{
    registers->rip = pc;
}

uint64_t registers_stack(const struct user_regs_struct *registers)
{
    return registers->rsp;
}

uint64_t registers_thread_block(const struct user_regs_struct *registers)
{
    return registers->fs_base;
}

uint64_t registers_goroutine(const struct user_regs_struct *registers)
{
    return registers->r14;
}

bool registers_are_native(const struct user_regs_struct *registers)
{
    return (registers->cs & 0xffff) == USER_CS;
}

/* ------------------------------------------------------------------------------------ system calls */

bool registers_in_call(const struct user_regs_struct *registers)
{
    return (int64_t)registers->orig_rax >= 0;
}

uint64_t registers_call_number(const struct user_regs_struct *registers)
{
    return registers->orig_rax;
}

int64_t registers_result(const struct user_regs_struct *registers)
{
    return (int64_t)registers->rax;
}

void registers_prepare_call(struct user_regs_struct *registers, long number, const uint64_t arguments[6],
                            uint64_t pc, uint64_t stack)
{
    registers->rax = (uint64_t)number;
    registers->orig_rax = NO_CALL;
    registers->rip = pc;
    registers->rsp = stack;
    registers->eflags &= ~FLAG_TRAP;
    registers->rdi = arguments[0];
    registers->rsi = arguments[1];
    registers->rdx = arguments[2];
    registers->r10 = arguments[3];
    registers->r8 = arguments[4];
    registers->r9 = arguments[5];
}

void registers_repeat_call(struct user_regs_struct *registers)
{
    registers->rax = registers->orig_rax;
    registers->rip -= SYSTEM_CALL_BYTES;
    registers->orig_rax = NO_CALL;
}

bool code_is_system_call(const uint8_t code[SYSTEM_CALL_BYTES])
{
    return !memcmp(code, system_call, sizeof(system_call));
}

/* ------------------------------------------------------------------------------------ borrowed code */

const uint8_t *code_find_call(const uint8_t *bytes, size_t size)
{
    return memmem(bytes, size, call_and_return, sizeof(call_and_return));
}

const uint8_t *code_find_sigreturn(const uint8_t *bytes, size_t size)
{
    const uint8_t *found = memmem(bytes, size, sigreturn_long, sizeof(sigreturn_long));

    return found ? found : memmem(bytes, size, sigreturn_short, sizeof(sigreturn_short));
}

bool code_is_sigreturn(const uint8_t code[CODE_SIGRETURN_BYTES])
{
    return !memcmp(code, sigreturn_long, sizeof(sigreturn_long)) ||
           !memcmp(code, sigreturn_short, sizeof(sigreturn_short));
}
