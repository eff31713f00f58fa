/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "analyzer/cascade/trace.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

struct stream_reader {
    struct process_event_iter *iter;
    struct process_event next;
    bool ended;
    uint64_t channels, functions; /* of the runs before */
};

/* By process of the trace. */
struct streams {
    struct stream_reader *items;
    size_t count, capacity;
};

static void free_streams(struct streams *streams)
{
    for (size_t i = 0; i < streams->count; i++)
        process_event_iter_free(streams->items[i].iter);
    free(streams->items);
}

/* The numbers that several runs have used for different things. */
static void number_anew(const struct stream_reader *stream, struct process_event *event)
{
    switch ((enum sync_event_kind)event->kind) {
    case SYNC_SEND:
    case SYNC_RECEIVE:
    case SYNC_ACCEPT:
    case SYNC_CONNECT:
    case SYNC_READ:
    case SYNC_WRITE:
    case SYNC_IO:
        event->object += event->object ? stream->channels : 0;
        break;
    case SYNC_ENQUEUE:
    case SYNC_DEQUEUE:
    case SYNC_HANDLER:
    case SYNC_SINK:
        event->other += stream->functions;
        break;
    default:
        break;
    }
}

static int advance(struct stream_reader *stream, struct error *err)
{
    int r = process_event_iter_next(stream->iter, &stream->next, err);

    if (r < 0)
        return r;
    stream->ended = r > 0;
    number_anew(stream, &stream->next);
    return 0;
}

/* Merges the processes' sequences by time; of equal times the first process's comes first. */
static int merge(struct cascade_trace *trace, struct stream_reader *streams, size_t count, struct error *err)
{
    for (;;) {
        size_t first = count;
        int r;

        for (size_t i = 0; i < count; i++)
            if (!streams[i].ended && (first == count || streams[i].next.ns < streams[first].next.ns))
                first = i;
        if (first == count)
            return 0;
        r = cascade_trace_append(trace, (uint32_t)first, &streams[first].next);
        if (r == -ENOMEM)
            return error_no_memory(err), -ENOMEM;
        if (r < 0)
            return error_say(err, r, "too many synchronisation events");
        r = advance(&streams[first], err);
        if (r < 0)
            return r;
    }
}

static int add_process(struct cascade_trace *trace, struct tracestore *store, const struct sync_process *from,
                       const struct stream_reader *bases, bool joined, struct streams *streams,
                       struct error *err)
{
    AUTO_FREE char *label = NULL;
    struct trace_process process = {
        .exe = from->exe,
        .process_id = from->process_id,
        .pid = from->pid,
        .from_start = from->from_start,
        .locks = from->library,
    };
    struct stream_reader *stream;
    uint32_t number;
    int r = joined ? asprintf(&label, "%" PRId64 ":%s", from->run_id, from->label)
                   : asprintf(&label, "%s", from->label);

    if (r < 0)
        label = NULL;
    process.label = label;
    if (!label || array_reserve(&streams->items, &streams->capacity, streams->count + 1) < 0 ||
        cascade_trace_process(trace, &process, &number) < 0)
        return error_no_memory(err), -ENOMEM;
    stream = &streams->items[streams->count];
    *stream = *bases;
    r = process_event_iter_open(store, PROCESS_STREAM_SYNC, from->process_id, &stream->iter, err);
    if (r < 0)
        return r;
    streams->count++;
    return advance(stream, err);
}

/* Appends the run's channels and declared functions to those of the runs before. */
static int add_names(struct cascade_trace *trace, struct tracestore *store, int64_t run_id,
                     struct stream_reader *bases, struct error *err)
{
    AUTO_FREE struct sync_function *functions = NULL;
    AUTO_FREE struct sync_channel *channels = NULL;
    size_t channel_count = 0, function_count = 0, channel_room = 0, function_room = 0;
    int r = sync_channels(store, run_id, &channels, &channel_count, err);

    if (r < 0)
        return r;
    channel_room = trace->channel_count;
    if (array_reserve(&trace->channels, &channel_room, trace->channel_count + channel_count + 1) < 0) {
        sync_channels_free(take_pointer(channels), channel_count);
        return error_no_memory(err), -ENOMEM;
    }
    for (size_t i = 0; i < channel_count; i++) {
        channels[i].channel += bases->channels;
        trace->channels[trace->channel_count++] = channels[i];
    }
    r = sync_functions(store, run_id, &functions, &function_count, err);
    if (r < 0)
        return r;
    function_room = trace->function_count;
    if (array_reserve(&trace->functions, &function_room, trace->function_count + function_count + 1) < 0) {
        sync_functions_free(take_pointer(functions), function_count);
        return error_no_memory(err), -ENOMEM;
    }
    for (size_t i = 0; i < function_count; i++) {
        functions[i].number += bases->functions;
        trace->functions[trace->function_count++] = functions[i];
    }
    if (trace->channel_count)
        bases->channels = trace->channels[trace->channel_count - 1].channel;
    if (trace->function_count)
        bases->functions = trace->functions[trace->function_count - 1].number;
    return 0;
}

static int add_run(struct cascade_trace *trace, struct tracestore *store, int64_t run_id, bool joined,
                   struct stream_reader *bases, struct streams *streams, struct error *err)
{
    struct sync_process *processes = NULL;
    size_t count = 0;
    int r = sync_processes(store, run_id, &processes, &count, err);

    if (r < 0)
        return r;
    if (!count)
        r = error_say(err, -ENODATA,
                      "cannot predict cascades in run %" PRId64
                      ": no synchronisation events (record with --sync)",
                      run_id);
    for (size_t i = 0; i < count && r == 0; i++)
        r = add_process(trace, store, &processes[i], bases, joined, streams, err);
    sync_processes_free(processes, count);
    return r < 0 ? r : add_names(trace, store, run_id, bases, err);
}

int cascade_trace_read(struct cascade_trace *trace, struct tracestore *store, const struct trace_parts *parts,
                       struct error *err)
{
    CLEANUP(free_streams) struct streams streams = {0};
    struct stream_reader bases = {0};
    int r = 0;

    for (size_t i = 0; i < parts->count && r == 0; i++)
        r = add_run(trace, store, parts->runs[i], parts->count > 1, &bases, &streams, err);
    return r < 0 ? r : merge(trace, streams.items, streams.count, err);
}
