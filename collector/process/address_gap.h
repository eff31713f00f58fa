/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Free addresses of a process within reach of its code. */
#ifndef TRACECTL_COLLECTOR_PROCESS_ADDRESS_GAP_H
#define TRACECTL_COLLECTOR_PROCESS_ADDRESS_GAP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct error;

/* Where `bytes` (whole pages) could be mapped so that 32-bit distances reach between there and all of
 * `start` to `end`: below it if there is a gap, else above. Never where the heap (brk) or the main thread's
 * stack would grow: the stack's gap stays as it was, and so do the first TiB behind the heap. -ENOSPC: nowhere. -ESRCH. */
int address_gap_near(pid_t pid, uint64_t start, uint64_t end, size_t bytes, uint64_t *ret_address,
                     struct error *err);

#endif
