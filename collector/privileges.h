/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The capabilities that recording needs, found out by experiment (Linux 6.18):
 *
 *   CAP_BPF, CAP_PERFMON     load the programs, attach probes and tracepoints; all that `record -- COMMAND`
 * needs CAP_SYS_PTRACE           look at processes of other users, and of programs that one may not read
 *   CAP_KILL                 let a process of another user and another session go that was held at its exec:
 *                            without it the process would stay stopped
 *   CAP_CHECKPOINT_RESTORE   open deleted or replaced libraries through /proc/PID/map_files
 *
 * CAP_SYS_ADMIN stands for the first two and the last one, as it does in the kernel; nothing needs it.
 */
#ifndef TRACECTL_COLLECTOR_PRIVILEGES_H
#define TRACECTL_COLLECTOR_PRIVILEGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* Sets of capabilities. */
enum {
    PRIVILEGE_BPF = 1,
    PRIVILEGE_PERFMON = 2,
    PRIVILEGE_SYS_PTRACE = 4,
    PRIVILEGE_KILL = 8,
    PRIVILEGE_CHECKPOINT_RESTORE = 16,
    PRIVILEGES_TO_RECORD = PRIVILEGE_BPF | PRIVILEGE_PERFMON,
    PRIVILEGES_FOR_OTHERS = PRIVILEGE_SYS_PTRACE | PRIVILEGE_KILL,
    /* What is still needed once everything is attached, when programs that appear later get probes too. */
    PRIVILEGES_TO_FOLLOW = PRIVILEGES_TO_RECORD | PRIVILEGES_FOR_OTHERS | PRIVILEGE_CHECKPOINT_RESTORE,
};

/* Those of `wanted` that this process does not have in effect. */
unsigned privileges_missing(unsigned wanted);

/* "CAP_BPF, CAP_PERFMON", as much of it as there is room for. */
void privileges_text(unsigned privileges, char *ret_text, size_t size);

/* Whether this process may send SIGCONT to `pid`: it must not be held at an exec otherwise. */
bool privileges_may_continue(pid_t pid);

/* Gives up for good every capability but those of `keep` that there are; 0 gives up all. What is attached,
 * mapped and open stays: with none left a recording of processes that get no new program runs on, and
 * detaches. A process that had CAP_SYS_ADMIN in the place of one to keep keeps that. Later access to files is
 * that of the user id alone. */
int privileges_drop(unsigned keep, struct error *err);

#endif
