/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Control groups that stand still (docker pause). */
#ifndef TRACECTL_COLLECTOR_PROCESS_FROZEN_H
#define TRACECTL_COLLECTOR_PROCESS_FROZEN_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether the process's control group is frozen, of either version, as far as the control groups can be seen
 * from here. It may be frozen or thawed a moment later. */
bool process_is_frozen(pid_t pid);

#endif
