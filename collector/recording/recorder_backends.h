/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The backends of a recording (collector/backend/backend.h): which there are, a round of reading, their end.
 */
#ifndef TRACECTL_COLLECTOR_RECORDING_RECORDER_BACKENDS_H
#define TRACECTL_COLLECTOR_RECORDING_RECORDER_BACKENDS_H

#include "collector/recording/recorder_state.h"

/* Opens the life-cycle source and the backends that the options want. */
int recorder_backends_open(struct recorder *recorder, struct error *err);
void recorder_backends_release(struct recorder *recorder);

/* Every backend takes note of a record of the life-cycle source. */
int recorder_backends_note(struct recorder *recorder, const void *record);

/* What is recorded ends at this moment. -ENOMEM. */
int recorder_backends_freeze(struct recorder *recorder);

/* Takes all probes away; what they have recorded stays to be read. */
void recorder_backends_detach(struct recorder *recorder);

/* Hands on what is left when nothing is recorded any more, and stores what has no other place. */
int recorder_backends_finish(struct recorder *recorder, struct error *err);

#endif
