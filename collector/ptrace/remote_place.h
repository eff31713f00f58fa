/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a process has already that calls for us can do with: instructions, and unused memory. */
#ifndef TRACECTL_COLLECTOR_PTRACE_REMOTE_PLACE_H
#define TRACECTL_COLLECTOR_PTRACE_REMOTE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct error;

/* Addresses of instructions in the process. */
struct remote_code {
    uint64_t call;      /* syscall; ret */
    uint64_t sigreturn; /* calls rt_sigreturn: what signal handlers return to */
};

/* Looks for them in everything executable that the process has mapped, the C library first, as it is in
 * memory at present (a breakpoint hides them). `memory`: /proc/PID/mem. -ENOENT: it has none. */
int remote_place_code(pid_t pid, int memory, struct remote_code *ret_code, struct error *err);

/* Memory of `size` bytes that no thread of the stopped process uses, at the lower end of the main thread's
 * stack: below it there is room for a signal handler, and it is either all zero, which is to say not used
 * yet, or far below where the main thread is, whose stack pointer is `main_sp` (UINT64_MAX: it has ended).
 * Where another thread is does not matter. -ENOSPC: there is none. */
int remote_place_memory(pid_t pid, int memory, uint64_t main_sp, size_t size, uint64_t *ret_address,
                        struct error *err);

#endif
