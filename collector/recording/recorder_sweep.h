/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the kernel has left in processes when the probes were taken away. It goes through all mappings of a
 * file for each place, and gives up a place ("failed to unregister, leaking uprobe" in its log) when there is
 * no memory to copy a page or to list the mappings, or when the process that closes the link is killed
 * (kernel/events/uprobes.c, uprobe_unregister_nosync). A breakpoint that stays is harmless, since the kernel
 * keeps what belongs to it, but takes about a microsecond whenever it is met.
 */
#ifndef TRACECTL_COLLECTOR_RECORDING_RECORDER_SWEEP_H
#define TRACECTL_COLLECTOR_RECORDING_RECORDER_SWEEP_H

#include "collector/recording/recorder_state.h"

/* After recorder_backends_detach(): lets the kernel try again where breakpoints have stayed, and names those
 * that it could not take away in tags "breakpoints left:PATH". Another tool's probe of one process is among
 * them, if it stands where ours stood; one of all processes is not, nor what stands in a process that has
 * breakpoints of its own or of a debugger. Once: nothing is known of former probes afterwards. */
void recorder_sweep_probes(struct recorder *recorder);

#endif
