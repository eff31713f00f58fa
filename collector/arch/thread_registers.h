/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The registers of a stopped thread, as ptrace(2) gives and takes them. */
#ifndef TRACECTL_COLLECTOR_ARCH_THREAD_REGISTERS_H
#define TRACECTL_COLLECTOR_ARCH_THREAD_REGISTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

/* Where it stands, and its stack pointer. */
uint64_t registers_pc(const struct user_regs_struct *registers);
void registers_set_pc(struct user_regs_struct *registers, uint64_t pc);
uint64_t registers_stack(const struct user_regs_struct *registers);

/* The address of its thread control block; 0: it has none yet. */
uint64_t registers_thread_block(const struct user_regs_struct *registers);

/* The goroutine that it runs, in functions that Go compiled. */
uint64_t registers_goroutine(const struct user_regs_struct *registers);

/* Whether it is in code of the machine's own instruction set, not of an older one (32 bits). */
bool registers_are_native(const struct user_regs_struct *registers);

/* ------------------------------------------------------------------------------------ system calls */

/* Whether it was stopped in a system call; its number, and what the call has returned. */
bool registers_in_call(const struct user_regs_struct *registers);
uint64_t registers_call_number(const struct user_regs_struct *registers);
int64_t registers_result(const struct user_regs_struct *registers);

/* Makes it stand at `pc`, an instruction that makes a system call, with this one to make, its stack pointer
 * at `stack`, and no trap behind instructions. */
void registers_prepare_call(struct user_regs_struct *registers, long number, const uint64_t arguments[6],
                            uint64_t pc, uint64_t stack);

/* Makes it stand before the system call that it is in, to make it anew. */
void registers_repeat_call(struct user_regs_struct *registers);

/* Whether the bytes are the instruction that makes a system call. */
#define SYSTEM_CALL_BYTES 2
bool code_is_system_call(const uint8_t code[SYSTEM_CALL_BYTES]);

/* ------------------------------------------------------------------------------------ borrowed code */

/* Finds `syscall; ret`, or code that calls rt_sigreturn, which signal handlers return to, in `size` bytes.
 * NULL: there is none. */
const uint8_t *code_find_call(const uint8_t *bytes, size_t size);
const uint8_t *code_find_sigreturn(const uint8_t *bytes, size_t size);

/* Whether the bytes are such code. */
#define CODE_SIGRETURN_BYTES 9
bool code_is_sigreturn(const uint8_t code[CODE_SIGRETURN_BYTES]);

#endif
