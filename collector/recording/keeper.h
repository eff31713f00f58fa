/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Room in the store while a recording goes on: what its retention does not keep goes in small steps, and when
 * the disk is full the oldest runs make room, if that is wanted.
 */
#ifndef TRACECTL_COLLECTOR_RECORDING_KEEPER_H
#define TRACECTL_COLLECTOR_RECORDING_KEEPER_H

#include "store/api/tracestore.h"

struct keeper_options {
    struct trace_retention keep;
    bool drop_oldest; /* when the disk is full: delete the oldest runs rather than stop */
};

struct keeper {
    struct tracestore *store;
    struct keeper_options options;
    struct trace_retained retained;
    bool more; /* the last step left something to do */
};

/* For the recording of `run_id`, which is never what has to go. Sets room aside for the day when the disk is
 * full. */
void keeper_init(struct keeper *keeper, struct tracestore *store, int64_t run_id,
                 const struct keeper_options *options);

/* One step of the retention, if `flushed` or if there is more to do. A locked store: later. */
int keeper_step(struct keeper *keeper, bool flushed, struct error *err);

/* The run has ended: all steps that are left, for what was written last counts, too. */
int keeper_finish(struct keeper *keeper, struct error *err);

/* Commits with `commit`, which has failed with -ENOSPC, after making room: once more for each run that goes.
 * -ENOSPC when there is nothing more to delete, or nothing may be. */
int keeper_commit(struct keeper *keeper, int (*commit)(void *context, struct error *err), void *context,
                  struct error *err);

#endif
