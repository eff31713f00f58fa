/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Runs a trial in a child process: what crashes, hangs or changes its process there harms nothing here. */
#ifndef TRACECTL_COLLECTOR_COST_ISOLATE_H
#define TRACECTL_COLLECTOR_COST_ISOLATE_H

#include <stddef.h>

/* Calls `body` in a child with a copy of the `size` bytes at `answer`, and copies them back when it has
 * ended, whatever became of it. Returns 0, the number of the signal that ended it (SIGALRM: it took more than
 * 20 seconds), or a negative errno when there was no child. */
int isolate(void (*body)(void *answer), void *answer, size_t size);

/* Calls `body` in a child, for what it does to the child. Returns as isolate(). */
int isolate_harm(void (*body)(void));

#endif
