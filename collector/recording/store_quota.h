/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Room in the store while a recording continues: what its retention does not keep goes in small steps, and when
 * the disk is full the oldest runs make room, if that is wanted.
 */
#ifndef TRACECTL_COLLECTOR_RECORDING_STORE_QUOTA_H
#define TRACECTL_COLLECTOR_RECORDING_STORE_QUOTA_H

#include "store/api/tracestore.h"

struct store_quota_options {
    struct trace_retention keep;
    bool drop_oldest; /* when the disk is full: delete the oldest runs rather than stop */
};

struct store_quota {
    struct tracestore *store;
    struct store_quota_options options;
    struct trace_retained retained;
    bool more; /* the last step left something to do */
};

/* For the recording of `run_id`, which is never what has to go. Sets room aside for the day when the disk is
 * full. */
void store_quota_init(struct store_quota *quota, struct tracestore *store, int64_t run_id,
                      const struct store_quota_options *options);

/* One step of the retention, if `flushed` or if there is more to do. A locked store: later. */
int store_quota_step(struct store_quota *quota, bool flushed, struct error *err);

/* The run has ended: all steps that are left, for what was written last counts, too. */
int store_quota_finish(struct store_quota *quota, struct error *err);

/* Commits with `commit`, which has failed with -ENOSPC, after making room: once more for each run that goes.
 * -ENOSPC when there is nothing more to delete, or nothing may be. */
int store_quota_commit(struct store_quota *quota, int (*commit)(void *context, struct error *err),
                       void *context, struct error *err);

#endif
