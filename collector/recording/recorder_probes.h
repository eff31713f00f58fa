/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether the processes of a recording still have the probes that they were given. A program may overwrite
 * its code, or map something else in its place, in ways that are not seen beforehand (bpf/rewrites.h); calls
 * are missed from then on. Looked for now and then, and at the end before the probes are taken away.
 *
 * Not seen: what a process overwrites between the last look and its end, and what it restores before the
 * next look.
 */
#ifndef TRACECTL_COLLECTOR_RECORDING_RECORDER_PROBES_H
#define TRACECTL_COLLECTOR_RECORDING_RECORDER_PROBES_H

#include "collector/recording/recorder_state.h"

/* Looks at the next processes if it is time. `now`: CLOCK_MONOTONIC. Functions whose probes a process has
 * overwritten are stored as blind from the time when it was last known to have them. */
int recorder_check_probes(struct recorder *recorder, uint64_t now, struct error *err);

/* Looks at all processes that are alive. */
int recorder_check_all_probes(struct recorder *recorder, struct error *err);

void recorder_probes_release(struct probe_watch *watch);

#endif
