/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/arch/signal_frame.h"

#include "collector/arch/thread_registers.h"

#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/ucontext.h>
#include <sys/uio.h>

/* The kernel's asm/ucontext.h and asm/sigcontext.h, which do not go with glibc's headers. */
#define UC_ALL 0x7u /* UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS */
#define MAGIC1 0x46505853u
#define MAGIC2 0x46505845u
#define SOFTWARE_AT 464 /* struct _fpx_sw_bytes, in what fxsave leaves free */
#define HEADER_AT 512   /* of the extended state: which components are not in their initial state */
#define LEGACY_BYTES 576
#define X87_AND_SSE 0x3ull

#define NO_STACK 0x7fffffffu /* flags that sigaltstack(2) refuses: the thread keeps the one that it has */

/* From the kernel's errno.h: what the registers say before a system call is restarted. */
enum { RESTART_SYS = 512, RESTART_NOINTR = 513, RESTART_NOHAND = 514, RESTART_BLOCK = 516 };

struct software_bytes {
    uint32_t magic, extended_size;
    uint64_t components;
    uint32_t state_size, padding[7];
};

/* Behind return_address, a frame is the beginning of glibc's ucontext_t. */
#define BEHIND_ADDRESS(member) (offsetof(struct signal_frame, member) - sizeof(uint64_t))
_Static_assert(BEHIND_ADDRESS(registers) == offsetof(ucontext_t, uc_mcontext.gregs), "registers");
_Static_assert(BEHIND_ADDRESS(state) == offsetof(ucontext_t, uc_mcontext.fpregs), "state");
_Static_assert(BEHIND_ADDRESS(blocked) == offsetof(ucontext_t, uc_sigmask), "signals");
_Static_assert(sizeof(struct software_bytes) == HEADER_AT - SOFTWARE_AT, "software bytes");

void signal_frame_fill(struct signal_frame *frame, const struct signal_frames *all,
                       const struct user_regs_struct *registers, uint64_t blocked)
{
    *frame = (struct signal_frame){
        .return_address = all->sigreturn,
        .flags = UC_ALL,
        .stack = {0, NO_STACK, 0},
        .state = all->state,
        .blocked = blocked,
        .registers =
            {
                [REG_R8] = registers->r8,
                [REG_R9] = registers->r9,
                [REG_R10] = registers->r10,
                [REG_R11] = registers->r11,
                [REG_R12] = registers->r12,
                [REG_R13] = registers->r13,
                [REG_R14] = registers->r14,
                [REG_R15] = registers->r15,
                [REG_RDI] = registers->rdi,
                [REG_RSI] = registers->rsi,
                [REG_RBP] = registers->rbp,
                [REG_RBX] = registers->rbx,
                [REG_RDX] = registers->rdx,
                [REG_RAX] = registers->rax,
                [REG_RCX] = registers->rcx,
                [REG_RSP] = registers->rsp,
                [REG_RIP] = registers->rip,
                [REG_EFL] = registers->eflags,
                [REG_CSGSFS] = registers->cs | registers->ss << 48,
            },
    };
}

/* Where a component of the extended state ends. */
static size_t component_end(unsigned component)
{
    unsigned size = 0, offset = 0, flags, ignored;

    return __get_cpuid_count(0xd, component, &size, &offset, &flags, &ignored) ? offset + size : 0;
}

int signal_frame_state(pid_t tid, uint8_t *bytes, size_t room, size_t *ret_size)
{
    size_t most = (room - sizeof(uint32_t)) & ~7ull; /* whole words, and room for the mark at the end */
    struct iovec io = {bytes, most};
    struct software_bytes software = {.magic = MAGIC1, .state_size = LEGACY_BYTES};
    const uint32_t end = MAGIC2;
    uint64_t used;

    if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_X86_XSTATE, &io) || io.iov_len < LEGACY_BYTES)
        return -EIO;
    if (io.iov_len == most)
        return -ENOSPC;
    memcpy(&used, bytes + HEADER_AT, sizeof(used));
    /* Those that are left out get their initial state, which is what they have. The kernel refuses more than
     * the thread may use, which is less than the whole. */
    software.components = used | X87_AND_SSE;
    for (unsigned i = 2; i < 63; i++)
        if (used >> i & 1 && component_end(i) > software.state_size)
            software.state_size = (uint32_t)component_end(i);
    if (software.state_size > io.iov_len)
        return -EIO;
    software.extended_size = software.state_size + (uint32_t)sizeof(end);
    memcpy(bytes + SOFTWARE_AT, &software, sizeof(software));
    memcpy(bytes + software.state_size, &end, sizeof(end));
    *ret_size = software.extended_size;
    return 0;
}

void signal_frame_restart(struct user_regs_struct *registers)
{
    int64_t result = -(int64_t)registers->rax;

    if ((int64_t)registers->orig_rax < 0 || (result != RESTART_SYS && result != RESTART_NOINTR &&
                                             result != RESTART_NOHAND && result != RESTART_BLOCK))
        return;
    registers_repeat_call(registers);
}
