/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/streams/process_streams.h"

#include "store/streams/go_events.h"
#include "store/streams/sync_events.h"

#define KIND(kind) (UINT64_C(1) << (kind))
_Static_assert((int)GO_EVENT_KINDS <= 64 && (int)SYNC_KINDS <= 64, "sets of kinds have 64 bits");

static const struct process_stream_traits streams[] = {
    [PROCESS_STREAM_GO] = {.events = "goroutine events",
                           .processes = "go_programs",
                           .names = NUMBER_FUNCTION,
                           .name = "function",
                           .find_name = "SELECT 1 FROM main.functions WHERE function_id = ?1",
                           .value_names = KIND(GO_EVENT_CREATE) | KIND(GO_EVENT_TEST),
                           .dispatches = KIND(GO_EVENT_RUN),
                           .actor_max = UINT64_MAX,
                           .place_max = UINT32_MAX,
                           .detail_max = UINT8_MAX,
                           .flags_max = UINT8_MAX},
    [PROCESS_STREAM_SYNC] = {.events = "synchronisation events",
                             .processes = "sync_processes",
                             .names = NUMBER_SITE,
                             .name = "call site",
                             .find_name = "SELECT 1 FROM main.call_sites WHERE site_id = ?1",
                             .transfers = KIND(SYNC_SEND) | KIND(SYNC_RECEIVE),
                             .actor_max = UINT32_MAX,
                             .place_max = UINT64_MAX,
                             .detail_max = SYNC_END},
};

const struct process_stream_traits *process_stream_traits(int64_t stream)
{
    return stream > 0 && stream < PROCESS_STREAMS_END ? &streams[stream] : NULL;
}
