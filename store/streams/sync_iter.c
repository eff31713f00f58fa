/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A process's synchronisation events, for the mechanism of process_iter.h. */
#include "store/db/store.h"
#include "store/streams/process_iter.h"
#include "store/streams/sync_codec.h"

static int open_decoder(const uint8_t *data, size_t size, uint64_t events, void **ret_decoder)
{
    struct sync_decoder *decoder = NULL;
    int code = sync_decoder_open(data, size, events, &decoder);

    *ret_decoder = decoder;
    return code;
}

static int next_event(void *decoder, void *ret_event, uint64_t *ret_ns)
{
    struct process_event *event = ret_event;
    int code = sync_decoder_next(decoder, event);

    *ret_ns = code ? 0 : event->ns;
    return code;
}

static void free_decoder(void *decoder)
{
    sync_decoder_free(decoder);
}

const struct process_event_kind process_events_of_sync = {
    .name = "synchronisation events",
    .find = PROCESS_ITER_FIND("sync_segments"),
    .open = open_decoder,
    .next = next_event,
    .free = free_decoder,
};
