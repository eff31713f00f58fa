/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/cascade/recorded_run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/cascade/event_loops.h"
#include "analyzer/symbols/symbols.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "store/db/db.h"

void recorded_run_release(struct recorded_run *run)
{
    frames_release(&run->frames);
    origins_release(&run->origins);
    contention_release(&run->contention);
    causality_release(&run->causality);
    handlers_release(&run->handlers);
    cascade_trace_release(&run->trace);
    tracestore_functions_free(run->functions, run->function_count);
    free(run->kinds);
    for (size_t i = 0; i < run->site_count; i++) {
        free(run->sites[i].function);
        free(run->sites[i].file);
    }
    free(run->sites);
    *run = (struct recorded_run){0};
}

/* ------------------------------------------------------------------------------------------ names */

const struct tracestore_function *recorded_run_find(const struct recorded_run *run, uint32_t function)
{
    size_t low = 0, high = run->function_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (run->functions[middle].function_id == function)
            return &run->functions[middle];
        if (run->functions[middle].function_id < function)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const char *recorded_run_function(const struct recorded_run *run, uint32_t function, char *text, size_t size)
{
    const struct tracestore_function *found = recorded_run_find(run, function);

    if (!found)
        return "?";
    if (!strstr(found->demangled, "@plt"))
        return found->demangled;
    snprintf(text, size, "%.*s", (int)symbols_bare_length(found->demangled), found->demangled);
    return text;
}

static const struct site_name *find_site(const struct recorded_run *run, uint32_t site)
{
    size_t low = 0, high = run->site_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (run->sites[middle].site_id == site)
            return &run->sites[middle];
        if (run->sites[middle].site_id < site)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* A declared handler's own function, since it begins before it is called; NULL: another event. */
static const char *handler_name(const struct recorded_run *run, uint32_t event)
{
    const struct process_event *of = &run->trace.events[event];

    for (size_t i = 0; of->kind == SYNC_HANDLER && i < run->trace.function_count; i++)
        if (run->trace.functions[i].number == of->other)
            return run->trace.functions[i].name;
    return NULL;
}

struct event_place recorded_run_place(const struct recorded_run *run, uint32_t event)
{
    const char *handler = handler_name(run, event);
    const struct site_name *site = find_site(run, run->trace.events[event].site);
    const struct tracestore_function *function = recorded_run_find(run, run->frames.function_of[event]);
    const struct process_event *of = &run->trace.events[event];

    if (of->kind == SYNC_HANDLER && of->other >= TRACE_RECOGNISED)
        function = recorded_run_find(run, (uint32_t)(of->other - TRACE_RECOGNISED));
    if (handler)
        return (struct event_place){handler, "", 0};
    if (site && *site->function)
        return (struct event_place){site->function, site->file, site->line};
    if (function)
        return (struct event_place){function->demangled, function->file, function->line};
    return (struct event_place){"", "", 0};
}

static int add_site(struct recorded_run *run, sqlite3_stmt *statement)
{
    struct site_name site = {
        .site_id = (uint32_t)sqlite3_column_int64(statement, 0),
        .function = db_text(statement, 1),
        .file = db_text(statement, 2),
        .line = sqlite3_column_int(statement, 3),
    };

    if (!site.function || !site.file ||
        array_reserve(&run->sites, &run->site_capacity, run->site_count + 1) < 0) {
        free(site.function);
        free(site.file);
        return -ENOMEM;
    }
    run->sites[run->site_count++] = site;
    return 0;
}

static int read_sites(struct recorded_run *run, struct tracestore *store, struct error *err)
{
    static const char what[] = "cannot read the call sites",
                      sql[] =
                          "SELECT s.site_id, coalesce(f.demangled, f.name), s.file, s.line"
                          " FROM main.call_sites s LEFT JOIN main.functions f USING (function_id)"
                          " ORDER BY s.site_id";
    struct sqlite3 *db = tracestore_db(store);
    AUTO_STATEMENT *statement = NULL;
    int r = db_prepare(db, sql, what, &statement, err);

    while (r == 0) {
        int step = db_row(statement, "iTTI");

        if (step == SQLITE_DONE)
            return 0;
        if (step != SQLITE_ROW)
            return db_fail(db, err, what);
        if (add_site(run, statement) < 0)
            return error_no_memory(err), -ENOMEM;
    }
    return r;
}

/* "send", "send@plt" and "send(int)" are the sink "send". */
static bool is_named(const char *name, const char *sink)
{
    size_t length = strlen(sink);

    return !strncmp(name, sink, length) && (!name[length] || name[length] == '(' || name[length] == '@');
}

static int compare_functions(const void *a, const void *b)
{
    const struct tracestore_function *first = a, *second = b;

    return first->function_id < second->function_id ? -1 : first->function_id > second->function_id;
}

/* Appends the functions of a run; one that several runs have stands there more than once. */
static int add_functions(struct recorded_run *run, struct tracestore *store, int64_t run_id,
                         struct error *err)
{
    AUTO_FREE struct tracestore_function *functions = NULL;
    size_t count = 0, room = run->function_count;
    int r = tracestore_functions(store, run_id, &functions, &count, err);

    if (r < 0)
        return r;
    if (array_reserve(&run->functions, &room, run->function_count + count + 1) < 0) {
        tracestore_functions_free(take_pointer(functions), count);
        return error_no_memory(err), -ENOMEM;
    }
    for (size_t i = 0; i < count; i++)
        run->functions[run->function_count++] = functions[i];
    return 0;
}

static int read_functions(struct recorded_run *run, struct tracestore *store, const char *sink,
                          struct error *err)
{
    int r = 0;

    for (size_t i = 0; i < run->parts.count && r == 0; i++)
        r = add_functions(run, store, run->parts.runs[i], err);
    if (r < 0)
        return r;
    if (run->parts.count > 1)
        qsort(run->functions, run->function_count, sizeof(*run->functions), compare_functions);
    if (run->function_count)
        run->kind_count = (size_t)run->functions[run->function_count - 1].function_id + 1;
    run->kinds = calloc(run->kind_count + 1, sizeof(*run->kinds));
    if (!run->kinds)
        return error_no_memory(err), -ENOMEM;
    for (size_t i = 0; i < run->function_count; i++) {
        const struct tracestore_function *function = &run->functions[i];

        run->kinds[function->function_id] = (struct frame_function){
            .known = true,
            .stub = strstr(function->name, "@plt"),
            .sink = sink && (is_named(function->name, sink) || is_named(function->demangled, sink)),
        };
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------ calls */

DEFINE_CLEANUP(cleanup_event_loop_reader, struct event_loop_reader *, event_loop_reader_free)
DEFINE_CLEANUP(cleanup_frame_reader, struct frame_reader *, frame_reader_free)
DEFINE_CLEANUP(cleanup_event_iter, struct event_iter *, event_iter_free)

/* Who reads a thread's stream of calls. */
struct call_reader {
    void *context;
    int (*event)(void *context, uint32_t thread, const struct event *event);
    int (*end)(void *context, uint32_t thread);
};

static int read_stream(struct tracestore *store, const struct tracestore_thread *thread,
                       const struct call_reader *reader, uint32_t number, struct error *err)
{
    CLEANUP(cleanup_event_iter) struct event_iter *iter = NULL;
    struct event event;
    int r = event_iter_open(store, thread->thread_id, 0, &iter, err);

    while (r == 0 && (r = event_iter_next(iter, &event, err)) == 0) {
        r = reader->event(reader->context, number, &event);
        if (r < 0)
            return error_no_memory(err), -ENOMEM;
    }
    if (r < 0)
        return r;
    return reader->end(reader->context, number) < 0 ? error_no_memory(err), -ENOMEM : 0;
}

/* The number of the thread with that label among those of the trace; TRACE_NONE: it has no sync events. */
static uint32_t find_thread(const struct recorded_run *run, const char *label)
{
    char text[64];

    for (uint32_t i = 0; i < run->trace.thread_count; i++) {
        cascade_trace_label(&run->trace, i, text, sizeof(text));
        if (!strcmp(text, label))
            return i;
    }
    return TRACE_NONE;
}

static int read_part(struct recorded_run *run, struct tracestore *store, int64_t run_id,
                     const struct call_reader *reader, struct error *err)
{
    struct tracestore_thread *threads = NULL;
    size_t count = 0;
    int r = tracestore_threads(store, run_id, &threads, &count, err);

    for (size_t i = 0; i < count && r == 0; i++) {
        char label[128];
        uint32_t number;

        if (run->parts.count > 1)
            snprintf(label, sizeof(label), "%" PRId64 ":%s", run_id, threads[i].label);
        else
            snprintf(label, sizeof(label), "%s", threads[i].label);
        number = find_thread(run, label);
        if (number != TRACE_NONE)
            r = read_stream(store, &threads[i], reader, number, err);
    }
    tracestore_threads_free(threads, count);
    return r;
}

static int read_streams(struct recorded_run *run, struct tracestore *store, const struct call_reader *reader,
                        struct error *err)
{
    int r = 0;

    for (size_t i = 0; i < run->parts.count && r == 0; i++)
        r = read_part(run, store, run->parts.runs[i], reader, err);
    return r;
}

static int on_loop_event(void *context, uint32_t thread, const struct event *event)
{
    return event_loop_reader_event(context, thread, event);
}

static int on_loop_end(void *context, uint32_t thread)
{
    return event_loop_reader_end(context, thread);
}

/* Handlers that were not declared. */
static int recognise_handlers(struct recorded_run *run, struct tracestore *store, struct error *err)
{
    CLEANUP(cleanup_event_loop_reader) struct event_loop_reader *loops = NULL;
    struct call_reader reader = {NULL, on_loop_event, on_loop_end};
    int r = event_loop_reader_new(&run->trace, run->kinds, run->kind_count, &loops);

    if (r < 0)
        return error_no_memory(err), -ENOMEM;
    reader.context = loops;
    r = read_streams(run, store, &reader, err);
    if (r < 0)
        return r;
    r = event_loops_mark(loops, &run->trace);
    return r < 0 ? error_say(err, r, "cannot find event handlers: too many events") : 0;
}

static int on_frame_event(void *context, uint32_t thread, const struct event *event)
{
    return frame_reader_event(context, thread, event);
}

static int on_frame_end(void *context, uint32_t thread)
{
    return frame_reader_end(context, thread);
}

static int read_frames(struct recorded_run *run, struct tracestore *store, struct error *err)
{
    CLEANUP(cleanup_frame_reader) struct frame_reader *frames = NULL;
    struct call_reader reader = {NULL, on_frame_event, on_frame_end};
    int r = frame_reader_new(&run->trace, run->kinds, run->kind_count, &run->frames, &frames);

    if (r < 0)
        return error_no_memory(err), -ENOMEM;
    reader.context = frames;
    return read_streams(run, store, &reader, err);
}

/* ------------------------------------------------------------------------------------------ the whole */

static int find_relations(struct recorded_run *run, struct error *err)
{
    int r = handlers_find(&run->trace, &run->handlers);

    if (r == 0)
        r = causality_find(&run->trace, &run->handlers, &run->causality);
    if (r == 0)
        r = contention_find(&run->trace, &run->handlers, &run->contention);
    if (r == 0)
        r = origins_find(&run->trace, &run->handlers, &run->causality, &run->origins);
    if (r == -ENOMEM)
        return error_no_memory(err), -ENOMEM;
    return r < 0 ? error_say(err, r, "cannot predict cascades: too many events") : 0;
}

int recorded_run_read(struct recorded_run *run, struct tracestore *store, const struct trace_parts *parts,
                      const char *sink, bool recognise, struct error *err)
{
    int r;

    *run = (struct recorded_run){.parts = *parts};
    r = cascade_trace_read(&run->trace, store, parts, err);
    if (r == 0)
        r = read_functions(run, store, sink, err);
    if (r == 0 && recognise)
        r = recognise_handlers(run, store, err);
    if (r == 0)
        r = find_relations(run, err);
    if (r == 0)
        r = read_sites(run, store, err);
    return r < 0 ? r : read_frames(run, store, err);
}
