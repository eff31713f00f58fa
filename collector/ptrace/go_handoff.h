/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Takes the processor (Go's struct p) from a thread that stands still and will never run Go code again.
 *
 * A thread that is held keeps its processor, and the goroutines in the queue of that processor run only when
 * another one has nothing else to do: never with GOMAXPROCS=1, and late where another goroutine yields in a
 * loop. So the thread is made to look as if it were in a system call for long, which is what it is about to
 * be: runtime.entersyscall's last stores. Go's monitor (sysmon, retake) then gives the processor away.
 */
#ifndef TRACECTL_COLLECTOR_PTRACE_GO_HANDOFF_H
#define TRACECTL_COLLECTOR_PTRACE_GO_HANDOFF_H

#include <stdint.h>
#include <sys/types.h>

#include "image/go/go_layout.h"

/* Thread `tid` stands at the entry of runtime.exit, called by the goroutine whose struct g is at `g`. Where
 * the structures are not what go 1.17 to 1.25 have (each pointer leads back to where it was read), nothing is
 * changed: -ENOTSUP. Other negative errno: the memory could not be read or written. */
int go_hand_off(pid_t tid, uint64_t g, const struct go_layout *layout);

#endif
