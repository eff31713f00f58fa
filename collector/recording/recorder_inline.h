/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The part of a recording that has inline probes beside the kernel's: their calls in order with its records.
 */
#ifndef TRACECTL_COLLECTOR_RECORDING_RECORDER_INLINE_H
#define TRACECTL_COLLECTOR_RECORDING_RECORDER_INLINE_H

#include "collector/recording/recorder_state.h"

/* Opens the inline backend if it is wanted and the recording's options allow for it. */
int recorder_inline_open(struct recorder *recorder, struct error *err);

/* Hands on the calls that come before a record, and takes note of what it says: of the kinds FORK, EXEC,
 * EXIT, CLAIM, SLOTS_LENT, SLOTS_BACK and INLINE, whole ones. */
int recorder_inline_note(struct recorder *recorder, const void *record);

/* recorder_consume() with inline probes: one round of inline.h. Returns how many records there were of both
 * kinds, or a failure, which streams_error() may tell more of. */
int recorder_inline_consume(struct recorder *recorder, unsigned limit);

/* Takes the inline probes away; what they have recorded stays to be read. */
void recorder_inline_detach(struct recorder *recorder);

/* Hands on what is left when nothing is recorded any more, and stores what has no other place. */
int recorder_inline_finish(struct recorder *recorder, struct error *err);

#endif
