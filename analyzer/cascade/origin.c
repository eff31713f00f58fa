/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/cascade/origin.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"

enum { MOST_STEPS = 64 /* back to the root */ };

/* What a channel is to the process that has it; connections are usually not shared between processes. */
enum { CHANNEL_ACCEPTED = 1, CHANNEL_CONNECTED = 2, CHANNEL_SENT = 4 };

void origins_release(struct origins *origins)
{
    free(origins->request_of);
    *origins = (struct origins){0};
}

static size_t channel_limit(const struct cascade_trace *trace)
{
    uint64_t most = 0;

    for (size_t i = 0; i < trace->channel_count; i++)
        if (trace->channels[i].channel > most)
            most = trace->channels[i].channel;
    return (size_t)most + 1;
}

/* Notes what the event says of its channel; returns whether it is the receipt of a request. */
static bool note_channel(uint8_t *channels, size_t count, const struct process_event *event)
{
    uint8_t *channel = event->object < count ? &channels[event->object] : NULL;

    if (!channel)
        return false;
    if (event->kind == SYNC_ACCEPT && event->phase == SYNC_END)
        *channel |= CHANNEL_ACCEPTED;
    else if (event->kind == SYNC_CONNECT)
        *channel |= CHANNEL_CONNECTED;
    else if (event->kind == SYNC_SEND)
        *channel |= CHANNEL_SENT;
    if (event->kind != SYNC_RECEIVE || event->result <= 0)
        return false;
    return (*channel & CHANNEL_ACCEPTED) || !(*channel & (CHANNEL_CONNECTED | CHANNEL_SENT));
}

int origins_find(const struct cascade_trace *trace, const struct handlers *handlers,
                 const struct causality *causality, struct origins *ret_origins)
{
    size_t lines = hb_line_count(causality->graph), channel_count = channel_limit(trace);
    AUTO_FREE uint32_t *last = malloc((lines + 1) * sizeof(*last));
    AUTO_FREE uint8_t *channels = calloc(channel_count, sizeof(*channels));

    *ret_origins = (struct origins){trace, handlers, causality,
                                    malloc((trace->count + 1) * sizeof(*ret_origins->request_of))};
    if (!last || !channels || !ret_origins->request_of)
        return -ENOMEM;
    for (size_t i = 0; i < lines; i++)
        last[i] = TRACE_NONE;
    for (uint32_t i = 0; i < trace->count; i++) {
        uint32_t line = hb_line_of(causality->graph, causality->node_of[i]);

        if (note_channel(channels, channel_count, &trace->events[i]))
            last[line] = i;
        ret_origins->request_of[i] = last[line];
    }
    return 0;
}

/* The event that caused this one in that way; TRACE_NONE: none is known. */
static uint32_t cause_of(const struct causality *causality, uint32_t event, enum hb_edge_kind kind)
{
    size_t count;
    const struct hb_edge *edges = hb_causes(causality->graph, causality->node_of[event], &count);

    for (size_t i = 0; i < count; i++)
        if (edges[i].kind == kind)
            return causality->event_of[edges[i].from];
    return TRACE_NONE;
}

/* Who queued the event; of a handler that was recognised, who woke its thread. */
static uint32_t handler_cause(const struct causality *causality, uint32_t first)
{
    static const enum hb_edge_kind kinds[] = {HB_ENQUEUE, HB_SIGNAL, HB_POST};
    uint32_t cause = TRACE_NONE;

    for (size_t i = 0; i < ARRAY_SIZE(kinds) && cause == TRACE_NONE; i++)
        cause = cause_of(causality, first, kinds[i]);
    return cause;
}

/* Whether the event belongs to a job that somebody else began. */
static bool has_cause(const struct origins *origins, uint32_t event)
{
    uint32_t line = hb_line_of(origins->causality->graph, origins->causality->node_of[event]);

    return origins->request_of[event] != TRACE_NONE || origins->causality->handler_of[line] != TRACE_NONE;
}

/* One step towards the root: TRACE_NONE when this is it, and then *ret_job is the answer. */
static uint32_t step_back(const struct origins *origins, uint32_t event, struct job *ret_job)
{
    const struct hb_graph *graph = origins->causality->graph;
    uint32_t line = hb_line_of(graph, origins->causality->node_of[event]);
    uint32_t request = origins->request_of[event], handler = origins->causality->handler_of[line], first;

    if (request != TRACE_NONE) {
        *ret_job = (struct job){JOB_REQUEST, origins->trace->events[request].object};
        return cause_of(origins->causality, request, HB_MESSAGE);
    }
    if (handler != TRACE_NONE) {
        first = origins->handlers->handlers[handler].first;
        *ret_job = (struct job){JOB_EVENT, first};
        return handler_cause(origins->causality, first);
    }
    *ret_job = (struct job){JOB_THREAD, origins->trace->events[event].thread};
    first =
        cause_of(origins->causality, origins->causality->event_of[hb_line_node(graph, line, 0)], HB_CREATE);
    return first != TRACE_NONE && has_cause(origins, first) ? first : TRACE_NONE;
}

struct job origin_of(const struct origins *origins, uint32_t event)
{
    struct job job = {JOB_EVENT, event};

    for (int i = 0; i < MOST_STEPS && event != TRACE_NONE; i++)
        event = step_back(origins, event, &job);
    return job;
}
