/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs whose files give rights (set-user-id, set-group-id, file capabilities). The kernel does not give them to
 * a process that a user without rights over it traces. Such a process executes the same program once more, and is
 * traced no longer: it then has its rights, and is not recorded.
 */
#ifndef TRACECTL_COLLECTOR_TRACER_FILE_RIGHTS_H
#define TRACECTL_COLLECTOR_TRACER_FILE_RIGHTS_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/user.h>

/* Whether a traced process stands at the exec of such a program and has not got its rights, and could call exec in
 * the same way again: `*ret_registers` are for its main thread, once it stands on its way back to the program. Should
 * that exec fail, the program that is there begins as it would have without it. */
bool file_rights_are_missed(pid_t pid, struct user_regs_struct *ret_registers);

#endif
