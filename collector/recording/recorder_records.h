/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The records of a round, each brought to the parts of the recording that it concerns: what happens to
 * processes to the backends, the streams and the loader, everything else to the streams alone. A process that
 * is held is let go here, whatever has happened.
 */
#ifndef TRACECTL_COLLECTOR_RECORDING_RECORDER_RECORDS_H
#define TRACECTL_COLLECTOR_RECORDING_RECORDER_RECORDS_H

#include "collector/recording/recorder_state.h"

/* A wire_handler whose context is the recorder. On failure recorder->failure, or the streams, say more. */
int recorder_handle(void *recorder, const void *record, size_t size);

/* Lets go what a record says is held (WIRE_HELD, process `pid`) or waits (WIRE_WAITING, its thread). False:
 * it was neither, or runs already since that took too long. */
bool recorder_let_go(struct recorder *recorder, const struct wire_header *header, pid_t pid);

#endif
