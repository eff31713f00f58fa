/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a thread does, in the kernel's eyes, in a few words. */
#ifndef TRACECTL_COLLECTOR_STACKS_THREAD_STATE_H
#define TRACECTL_COLLECTOR_STACKS_THREAD_STATE_H

#include <stddef.h>

#include "collector/stacks/live_threads.h"

/* "running", "sleeping in futex", "waiting in read" (not to be interrupted: a disk, say), "stopped"
 * (SIGSTOP), "traced" (a debugger holds it)... */
void thread_state_words(const struct live_thread *thread, char *ret_text, size_t size);

#endif
