/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/recording/store_quota.h"

#include <errno.h>

#include "base/clock.h"

void store_quota_init(struct store_quota *quota, struct tracestore *store, int64_t run_id,
                      const struct store_quota_options *options)
{
    *quota = (struct store_quota){.store = store, .options = *options};
    quota->options.keep.spare_run = run_id;
    tracestore_reserve(store);
    if (options->keep.bytes)
        tracestore_keep_log_short(store, options->keep.bytes);
}

int store_quota_step(struct store_quota *quota, bool flushed, struct error *err)
{
    const struct trace_retention *keep = &quota->options.keep;
    int r;

    if (!(keep->bytes || keep->age_ns || keep->runs) || !(flushed || quota->more))
        return 0;
    r = tracestore_retain(quota->store, keep, clock_ns(CLOCK_REALTIME), &quota->retained, err);
    quota->more = r > 0;
    return r < 0 && r != -EBUSY && r != -ENOSPC ? r : 0; /* a full disk is the next commit's business */
}

int store_quota_finish(struct store_quota *quota, struct error *err)
{
    int r;

    do
        r = store_quota_step(quota, true, err);
    while (!r && quota->more);
    return r;
}

int store_quota_commit(struct store_quota *quota, int (*commit)(void *context, struct error *err),
                       void *context, struct error *err)
{
    int r = -ENOSPC, room;

    if (!quota->options.drop_oldest)
        return r;
    while (r == -ENOSPC) {
        room = tracestore_make_room(quota->store, clock_ns(CLOCK_REALTIME), &quota->retained, NULL);
        if (room <= 0)
            return r; /* `err` has why the commit failed */
        r = commit(context, err);
    }
    tracestore_reserve(quota->store);
    return r;
}
