/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Threads whose system calls go somewhere else first. Since Linux 6.11 a return probe enters the kernel by a
 * system call, out of the kernel's own page: a thread that dispatches system calls itself (Wine, emulators)
 * would get a SIGSYS for it, and a tracer would see a call that the program never made.
 */
#ifndef TRACECTL_BPF_WATCHED_CALLS_H
#define TRACECTL_BPF_WATCHED_CALLS_H

#include <bpf/bpf_core_read.h>

#define WORK_BIT(name) (1ul << bpf_core_enum_value(enum syscall_work_bit, SYSCALL_WORK_BIT_##name))

static __always_inline bool system_calls_are_watched(const struct task_struct *task)
{
    return task->thread_info.syscall_work &
           (WORK_BIT(SYSCALL_USER_DISPATCH) | WORK_BIT(SYSCALL_EMU) | WORK_BIT(SYSCALL_TRACE));
}

/* Or a filter decides about them, which knows only those that the program makes itself. */
static __always_inline bool system_calls_are_filtered(const struct task_struct *task)
{
    return task->thread_info.syscall_work & WORK_BIT(SECCOMP) || system_calls_are_watched(task);
}

#endif
