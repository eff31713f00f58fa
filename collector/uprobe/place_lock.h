/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Recorders that put probes of different kinds into one program wait for each other.
 *
 * Uprobes must not be placed while a process that runs the program has inline probes, and the other way
 * round: the kernel would write its breakpoints over jumps, and the target would die. Each kind looks for the
 * other before it is placed; so that what was seen still holds then, it looks and places under this lock,
 * uprobes beside each other, inline probes alone.
 *
 * It is a lock on a byte of /run/tracectl.lock, which goes with the last descriptor of its holder.
 */
#ifndef TRACECTL_COLLECTOR_UPROBE_PLACE_LOCK_H
#define TRACECTL_COLLECTOR_UPROBE_PLACE_LOCK_H

#include <stdbool.h>
#include <sys/types.h>

#define PLACE_LOCK_NONE (-1)

/* Waits for the lock of a program, so many milliseconds at most. Returns -EBUSY when it did not come free.
 * The caller closes `*ret_fd`; it is PLACE_LOCK_NONE where the file cannot be opened (only root can make it):
 * there is no lock then. */
int place_lock(dev_t device, ino_t inode, bool alone, unsigned wait_ms, int *ret_fd);

#endif
