/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How a process ended, as the store and the shell put it. */
#ifndef TRACECTL_COLLECTOR_PROCESS_WAIT_STATUS_H
#define TRACECTL_COLLECTOR_PROCESS_WAIT_STATUS_H

#include <sys/wait.h>

/* wait(2)'s status as 0 to 255, or 128 + the signal that ended the process. */
static inline int wait_status_code(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

#endif
