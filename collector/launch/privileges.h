/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The capabilities that recording needs, found out by experiment (Linux 6.18):
 *
 *   CAP_BPF, CAP_PERFMON     load the programs and attach the tracepoints; all that a user needs who records
 *                            programs that have no more capabilities than the recorder
 *   CAP_SYS_PTRACE           look at processes of other users, at those with more capabilities, and at
 * programs that one may not read CAP_KILL                 let a process of another user go that was held at
 * its exec; without it such processes are not held CAP_CHECKPOINT_RESTORE   open deleted or replaced
 * libraries through /proc/PID/map_files CAP_DAC_OVERRIDE         files of other users: the store, programs,
 * what containers have CAP_SYS_NICE             put probes in and take them out before any other thread runs
 * (backend/proxy.h)
 *
 * CAP_SYS_ADMIN stands for the first two and the last one, as it does in the kernel; nothing needs it. Once
 * the programs are loaded, attaching them, reading and changing their maps and detaching take no capability:
 * the descriptors are enough (since 5.19, commit c8644cd0efe7, "bpf: refine kernel.unprivileged_bpf_disabled
 * behaviour").
 */
#ifndef TRACECTL_COLLECTOR_LAUNCH_PRIVILEGES_H
#define TRACECTL_COLLECTOR_LAUNCH_PRIVILEGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct error;

/* Sets of capabilities. */
enum {
    PRIVILEGE_BPF = 1,
    PRIVILEGE_PERFMON = 2,
    PRIVILEGE_SYS_PTRACE = 4,
    PRIVILEGE_KILL = 8,
    PRIVILEGE_CHECKPOINT_RESTORE = 16,
    PRIVILEGE_FILES = 32,
    PRIVILEGE_SCHEDULE = 64,
    PRIVILEGE_ADMIN = 128, /* some kernels ask for it where perf events are opened (Debian's before 6.6) */
    PRIVILEGES_TO_RECORD = PRIVILEGE_BPF | PRIVILEGE_PERFMON,
    PRIVILEGES_FOR_OTHERS = PRIVILEGE_SYS_PTRACE | PRIVILEGE_KILL,
    /* What is of use once the programs are loaded, when programs that appear later get probes too. */
    PRIVILEGES_TO_FOLLOW =
        PRIVILEGES_FOR_OTHERS | PRIVILEGE_CHECKPOINT_RESTORE | PRIVILEGE_FILES | PRIVILEGE_SCHEDULE,
};

/* Those of `wanted` that this process does not have in effect. */
unsigned privileges_missing(unsigned wanted);

/* "CAP_BPF, CAP_PERFMON", as much of it as fits. */
void privileges_text(unsigned privileges, char *ret_text, size_t size);

/* Gives up permanently every capability but those of `keep` that there are; 0 gives up all. What is attached,
 * mapped and open stays: with none left a recording of processes that get no new program runs on, and
 * detaches. A process that had CAP_SYS_ADMIN in the place of one to keep keeps that. Later access to files is
 * that of the user id alone. */
int privileges_drop(unsigned keep, struct error *err);

#endif
