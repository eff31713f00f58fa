/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The part of a recording that a flight recorder has beside others: triggers, and commits when they fire. */
#ifndef TRACECTL_COLLECTOR_RECORDING_RECORDER_FLIGHT_H
#define TRACECTL_COLLECTOR_RECORDING_RECORDER_FLIGHT_H

#include "collector/recording/recorder_state.h"

/* Before the streams are made: what they are to watch for the options' flight recorder. */
int recorder_flight_open(struct recorder *recorder, struct stream_options *stream, struct error *err);

/* The process is one that exits are told of. -ENOMEM. */
int recorder_flight_name(struct recorder *recorder, pid_t pid);

/* A process has ended, with a wait status. */
void recorder_flight_ended(struct recorder *recorder, pid_t pid, int wait_status);

/* Once a round: takes note of what was asked for, and commits when it is time. */
int recorder_flight_round(struct recorder *recorder, uint64_t now_ns,
                          int (*flush)(void *context, struct error *err), struct error *err);

void recorder_flight_release(struct recorder *recorder);

#endif
