/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A process's synchronisation events, for the mechanism of process_iter.h. */
#include "base/cleanup.h"
#include "store/db/store.h"
#include "store/streams/sync_codec.h"
#include "store/streams/sync_tables.h"

struct sync_event_iter {
    struct process_iter segments;
};

static int open_decoder(const uint8_t *data, size_t size, uint64_t events, void **ret_decoder)
{
    struct sync_decoder *decoder = NULL;
    int code = sync_decoder_open(data, size, events, &decoder);

    *ret_decoder = decoder;
    return code;
}

static int next_event(void *decoder, void *ret_event, uint64_t *ret_ns)
{
    struct sync_event *event = ret_event;
    int code = sync_decoder_next(decoder, event);

    *ret_ns = code ? 0 : event->ns;
    return code;
}

static void free_decoder(void *decoder)
{
    sync_decoder_free(decoder);
}

static const struct process_event_kind events = {
    .name = "synchronisation events",
    .find = PROCESS_ITER_FIND("sync_segments"),
    .has_table = store_has_sync,
    .open = open_decoder,
    .next = next_event,
    .free = free_decoder,
};

DEFINE_CLEANUP(cleanup_iter, struct sync_event_iter *, sync_event_iter_free)

int sync_event_iter_open_db(sqlite3 *db, int64_t process_id, const struct process_range *range,
                            struct sync_event_iter **ret_iter, struct error *err)
{
    CLEANUP(cleanup_iter) struct sync_event_iter *iter = calloc(1, sizeof(*iter));
    int code;

    if (!iter)
        return error_no_memory(err);
    code = process_iter_init(&iter->segments, &events, db, process_id, range, err);
    if (!code)
        *ret_iter = take_pointer(iter);
    return code;
}

int sync_event_iter_open(struct tracestore *store, int64_t process_id, struct sync_event_iter **ret_iter,
                         struct error *err)
{
    return sync_event_iter_open_db(store->db, process_id, &PROCESS_RANGE_ALL, ret_iter, err);
}

void sync_event_iter_free(struct sync_event_iter *iter)
{
    if (!iter)
        return;
    process_iter_release(&iter->segments);
    free(iter);
}

uint64_t sync_event_iter_seq(const struct sync_event_iter *iter)
{
    return process_iter_seq(&iter->segments);
}

int sync_event_iter_next(struct sync_event_iter *iter, struct sync_event *ret_event, struct error *err)
{
    return process_iter_next(&iter->segments, ret_event, err);
}
