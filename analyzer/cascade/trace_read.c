/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "analyzer/cascade/trace.h"
#include "base/cleanup.h"

struct process_stream {
    struct sync_event_iter *iter;
    struct sync_event next;
    bool ended;
};

static void free_streams(struct process_stream **streams)
{
    for (size_t i = 0; *streams && (*streams)[i].iter; i++)
        sync_event_iter_free((*streams)[i].iter);
    free(*streams);
}

static int advance(struct process_stream *stream, struct error *err)
{
    int r = sync_event_iter_next(stream->iter, &stream->next, err);

    if (r < 0)
        return r;
    stream->ended = r > 0;
    return 0;
}

/* Merges the processes' sequences by time; of equal times the first process's comes first. */
static int merge(struct cascade_trace *trace, struct process_stream *streams, size_t count, struct error *err)
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
            return error_say(err, r, "reading the events of locks and messages: there are too many");
        r = advance(&streams[first], err);
        if (r < 0)
            return r;
    }
}

static int read_events(struct cascade_trace *trace, struct tracestore *store,
                       const struct sync_process *processes, size_t count, struct error *err)
{
    CLEANUP(free_streams) struct process_stream *streams = calloc(count + 1, sizeof(*streams));
    int r = streams ? 0 : -ENOMEM;

    for (size_t i = 0; i < count && r == 0; i++) {
        const struct sync_process *from = &processes[i];
        const struct trace_process process = {
            .label = from->label,
            .exe = from->exe,
            .process_id = from->process_id,
            .pid = from->pid,
            .from_start = from->from_start,
            .locks = from->library,
        };
        uint32_t number;

        if (cascade_trace_process(trace, &process, &number) < 0)
            return error_no_memory(err), -ENOMEM;
        r = sync_event_iter_open(store, from->process_id, &streams[i].iter, err);
        if (r == 0)
            r = advance(&streams[i], err);
    }
    return r < 0 ? r : merge(trace, streams, count, err);
}

int cascade_trace_read(struct cascade_trace *trace, struct tracestore *store, int64_t run_id,
                       struct error *err)
{
    struct sync_process *processes = NULL;
    size_t count;
    int r = sync_processes(store, run_id, &processes, &count, err);

    if (r < 0)
        return r;
    if (!count)
        r = error_say(err, -ENODATA,
                      "looking for cascades in run %" PRId64
                      ": it has no events of locks and messages (record it with --sync)",
                      run_id);
    if (r == 0)
        r = read_events(trace, store, processes, count, err);
    sync_processes_free(processes, count);
    if (r == 0)
        r = sync_channels(store, run_id, &trace->channels, &trace->channel_count, err);
    if (r == 0)
        r = sync_functions(store, run_id, &trace->functions, &trace->function_count, err);
    return r;
}
