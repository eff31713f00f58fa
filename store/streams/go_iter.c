/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A process's goroutine events, for the mechanism of process_iter.h. */
#include "base/cleanup.h"
#include "store/db/store.h"
#include "store/streams/go_codec.h"
#include "store/streams/go_tables.h"

struct go_event_iter {
    struct process_iter segments;
};

static int open_decoder(const uint8_t *data, size_t size, uint64_t events, void **ret_decoder)
{
    struct go_decoder *decoder = NULL;
    int code = go_decoder_open(data, size, events, &decoder);

    *ret_decoder = decoder;
    return code;
}

static int next_event(void *decoder, void *ret_event, uint64_t *ret_ns)
{
    struct go_event *event = ret_event;
    int code = go_decoder_next(decoder, event);

    *ret_ns = code ? 0 : event->ns;
    return code;
}

static void free_decoder(void *decoder)
{
    go_decoder_free(decoder);
}

static const struct process_event_kind events = {
    .name = "goroutine events",
    .find = PROCESS_ITER_FIND("go_segments"),
    .has_table = store_has_go,
    .open = open_decoder,
    .next = next_event,
    .free = free_decoder,
};

DEFINE_CLEANUP(cleanup_iter, struct go_event_iter *, go_event_iter_free)

int go_event_iter_open_db(sqlite3 *db, int64_t process_id, const struct process_range *range,
                          struct go_event_iter **ret_iter, struct error *err)
{
    CLEANUP(cleanup_iter) struct go_event_iter *iter = calloc(1, sizeof(*iter));
    int code;

    if (!iter)
        return error_no_memory(err);
    code = process_iter_init(&iter->segments, &events, db, process_id, range, err);
    if (!code)
        *ret_iter = take_pointer(iter);
    return code;
}

int go_event_iter_open(struct tracestore *store, int64_t process_id, struct go_event_iter **ret_iter,
                       struct error *err)
{
    return go_event_iter_open_db(store->db, process_id, &PROCESS_RANGE_ALL, ret_iter, err);
}

void go_event_iter_free(struct go_event_iter *iter)
{
    if (!iter)
        return;
    process_iter_release(&iter->segments);
    free(iter);
}

uint64_t go_event_iter_seq(const struct go_event_iter *iter)
{
    return process_iter_seq(&iter->segments);
}

int go_event_iter_next(struct go_event_iter *iter, struct go_event *ret_event, struct error *err)
{
    return process_iter_next(&iter->segments, ret_event, err);
}
