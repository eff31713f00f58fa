/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Threads whose system calls go somewhere else first. Since Linux 6.11 a return probe enters the kernel by a
 * system call, out of the kernel's own page: a thread that dispatches system calls itself (Wine, emulators)
 * would get a SIGSYS for it, and a tracer would see a call that the program never made.
 */
#ifndef TRACECTL_BPF_WATCHED_CALLS_H
#define TRACECTL_BPF_WATCHED_CALLS_H

#include <bpf/bpf_core_read.h>

#include "bpf/arch.h"

#define WORK_BIT(name) (1ul << bpf_core_enum_value(enum syscall_work_bit, SYSCALL_WORK_BIT_##name))

static __always_inline bool system_calls_are_watched(const struct task_struct *task)
{
    return task->thread_info.syscall_work &
           (WORK_BIT(SYSCALL_USER_DISPATCH) | WORK_BIT(SYSCALL_EMU) | WORK_BIT(SYSCALL_TRACE));
}

static __always_inline bool has_call_filter(const struct task_struct *task)
{
    return task->thread_info.syscall_work & WORK_BIT(SECCOMP);
}

/* The filter of a task, which tells what it and those below it allow whatever the arguments are: the kernel works that out
 * when a filter is installed, since Linux 5.11, and does not even run the filters for such calls. NULL: it has none, or
 * does not tell. */
static __always_inline const struct seccomp_filter *call_filter(const struct task_struct *task)
{
    if (!bpf_core_field_exists(struct task_struct, seccomp.filter) ||
        !bpf_core_field_exists(struct seccomp_filter, cache))
        return 0;
    return task->seccomp.filter;
}

#define IS_ALLOWED(filter, number) ((filter)->cache.allow_native[(number) / 64] >> (number) % 64 & 1)

/* Whether a thread must not wait by system call: it goes somewhere else first, or a filter might not allow it. A wait
 * that is interrupted continues by another call. */
static __always_inline bool must_not_wait(const struct task_struct *task)
{
    const struct seccomp_filter *filter;

    if (system_calls_are_watched(task))
        return true;
    if (!has_call_filter(task))
        return false;
    filter = call_filter(task);
    return !filter || !IS_ALLOWED(filter, CALL_FUTEX) || !IS_ALLOWED(filter, CALL_RESTART);
}

#endif
