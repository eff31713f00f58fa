/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/recording/keeper.h"

#include <errno.h>

#include "base/clock.h"

void keeper_init(struct keeper *keeper, struct tracestore *store, int64_t run_id,
                 const struct keeper_options *options)
{
    *keeper = (struct keeper){.store = store, .options = *options};
    keeper->options.keep.spare_run = run_id;
    tracestore_reserve(store);
    if (options->keep.bytes)
        tracestore_keep_log_short(store, options->keep.bytes);
}

int keeper_step(struct keeper *keeper, bool flushed, struct error *err)
{
    const struct trace_retention *keep = &keeper->options.keep;
    int r;

    if (!(keep->bytes || keep->age_ns || keep->runs) || !(flushed || keeper->more))
        return 0;
    r = tracestore_retain(keeper->store, keep, clock_ns(CLOCK_REALTIME), &keeper->retained, err);
    keeper->more = r > 0;
    return r < 0 && r != -EBUSY && r != -ENOSPC ? r : 0; /* a full disk is the next commit's business */
}

int keeper_finish(struct keeper *keeper, struct error *err)
{
    int r;

    do
        r = keeper_step(keeper, true, err);
    while (!r && keeper->more);
    return r;
}

int keeper_commit(struct keeper *keeper, int (*commit)(void *context, struct error *err), void *context,
                  struct error *err)
{
    int r = -ENOSPC, room;

    if (!keeper->options.drop_oldest)
        return r;
    while (r == -ENOSPC) {
        room = tracestore_make_room(keeper->store, clock_ns(CLOCK_REALTIME), &keeper->retained, NULL);
        if (room <= 0)
            return r; /* `err` has why the commit failed */
        r = commit(context, err);
    }
    tracestore_reserve(keeper->store);
    return r;
}
