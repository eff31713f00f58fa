/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes whose rights change: they get memory of their own for the records of their inline probes
 * (bpf/rights.h). Those that are not reported when it happens are found by comparing rights once a second.
 */
#ifndef TRACECTL_COLLECTOR_RECORDING_RECORDER_RIGHTS_H
#define TRACECTL_COLLECTOR_RECORDING_RECORDER_RIGHTS_H

#include "collector/recording/recorder_state.h"

/* A process reports that it is about to change its rights; it is let go. -ENOMEM, or the store's failure. */
int recorder_handle_rights(struct recorder *recorder, const struct wire_rights *record);

/* Looks for processes with other rights than the rest of their families, if it is time (`now`:
 * CLOCK_MONOTONIC). -ENOMEM, or the store's failure. */
int recorder_check_rights(struct recorder *recorder, uint64_t now, struct error *err);

#endif
