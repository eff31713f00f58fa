/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How much memory a process may map, and lock. */
#ifndef TRACECTL_COLLECTOR_PROCESS_LIMITS_H
#define TRACECTL_COLLECTOR_PROCESS_LIMITS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Whether its address space has a limit (RLIMIT_AS, `ulimit -v`): what is mapped for us, it cannot map. False
 * when it is gone. */
bool process_has_address_limit(pid_t pid);

/* Whether it may lock only a part of its memory (RLIMIT_MEMLOCK without CAP_IPC_LOCK): then mlockall() fails
 * once more than that is mapped. False when it is gone. */
bool process_has_lock_limit(pid_t pid);

/* Whether it is in other cgroups than this process: what it touches first is counted against other limits.
 * False when it is gone. */
bool process_has_other_cgroups(pid_t pid);

/* What it has locked in memory (mlock, mlockall); 0 when it is gone. */
uint64_t process_locked_bytes(pid_t pid);

#endif
