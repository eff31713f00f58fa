/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that are about to change their own code (bpf/rewrites.h). Each waits until its image has no probes
 * any more. That is done between two rounds of reading: probes are not moved while records are read.
 */
#ifndef TRACECTL_COLLECTOR_RECORDING_RECORDER_REWRITES_H
#define TRACECTL_COLLECTOR_RECORDING_RECORDER_REWRITES_H

#include "collector/recording/recorder_state.h"

/* A program asks for it: it is served soon, or let go at once when the recording ends. -ENOMEM. */
int recorder_note_rewrite(struct recorder *recorder, const struct wire_rewrite *record, struct error *err);

/* Serves those that wait. */
int recorder_serve_rewrites(struct recorder *recorder, struct error *err);

#endif
