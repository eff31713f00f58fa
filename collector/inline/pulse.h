/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Signs of life of the collector, for threads that wait for chunks (agent_head.alive), while it is busy with
 * something else: a new program's functions, a commit. A thread of its own gives them, so that they end with
 * the collector when it is killed, stopped or looked at by a debugger. They also end
 *
 * - while the collector waits for a target (pulse_hold): that may wait for the collector itself, as a child
 * by vfork() does for a chunk while its parent, which is to be stopped, waits for the child;
 * - when the collector has not come round to reading for PULSE_TRUST_NS: what it hangs in does not hold the
 *   programs up.
 */
#ifndef TRACECTL_COLLECTOR_INLINE_PULSE_H
#define TRACECTL_COLLECTOR_INLINE_PULSE_H

#include "base/error.h"
#include "collector/inline/area.h"

#define PULSE_TRUST_NS 10000000000ull

struct pulse;

/* Starts the thread. The caller's process must not give up rights afterwards that the thread would keep: it
 * gives up its own. -ENOMEM, -EAGAIN. */
int pulse_start(struct pulse **ret_pulse, struct error *err);

/* Accepts NULL. */
void pulse_stop(struct pulse *pulse);

/* Threads that have this area mapped may wait from now on. The area stays the caller's, who removes it before
 * it goes. All accept NULL for a pulse. -ENOMEM. */
int pulse_add(struct pulse *pulse, struct agent_area *area);
void pulse_remove(struct pulse *pulse, const struct agent_area *area);

/* The collector has come round to reading. */
void pulse_round(struct pulse *pulse);

/* No sign of life is given between the two; they may be nested. */
void pulse_hold(struct pulse *pulse);
void pulse_resume(struct pulse *pulse);

#endif
