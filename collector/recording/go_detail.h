/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Keeps the recording of goroutines within its budget: the policy's decisions, carried out. */
#ifndef TRACECTL_COLLECTOR_RECORDING_GO_DETAIL_H
#define TRACECTL_COLLECTOR_RECORDING_GO_DETAIL_H

#include "collector/stream/streams.h"
#include "collector/uprobe/uprobe.h"

/* Asks the policy of each Go program that runs what is to be recorded of it, places probes or takes them
 * away, and tells it in the program's events. `now_ns`: CLOCK_MONOTONIC. A program that ends meanwhile is
 * not changed. */
int go_detail_apply(struct streams *streams, struct uprobe_backend *backend, uint64_t now_ns,
                    struct error *err);

#endif
