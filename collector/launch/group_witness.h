/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A signal that comes to this process may have been sent to it alone (`kill PID`, systemd), or to its whole
 * process group: Ctrl-C, timeout(1), `kill %1`. In the second case a command in the same group has it
 * already, and must not be sent it again. The signal itself does not tell which it was. The witness does: a
 * process of the group that blocks all signals, so that what the group was sent stays pending for it, where
 * /proc shows it.
 */
#ifndef TRACECTL_COLLECTOR_LAUNCH_GROUP_WITNESS_H
#define TRACECTL_COLLECTOR_LAUNCH_GROUP_WITNESS_H

#include <stdbool.h>
#include <sys/types.h>

struct error;

struct group_witness {
    pid_t pid; /* 0: there is none */
};

/* Forks the witness, which ends with this process at the latest. */
int group_witness_start(struct group_witness *ret_witness, struct error *err);

/* Whether the group has been sent this signal since the witness began. The kernel signals the members of a
 * group one after the other: ask a moment after the signal came here. Without a witness: no. */
bool group_witness_saw(const struct group_witness *witness, int signal);

/* Ends it. Does nothing when there is none. */
void group_witness_stop(struct group_witness *witness);

#endif
