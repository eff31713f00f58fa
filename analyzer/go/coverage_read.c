/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/go/coverage.h"

#include <errno.h>

#include "analyzer/go/feed.h"
#include "base/cleanup.h"
#include "base/error.h"

DEFINE_CLEANUP(cleanup_observer, struct go_coverage_observer *, go_coverage_observer_free)
DEFINE_CLEANUP(cleanup_places, struct go_places *, go_places_free)

static int on_event(void *context, const struct go_replay *replay, const struct process_event *event)
{
    return go_coverage_observer_event(context, replay, event);
}

static int on_action(void *context, const struct go_goroutine *goroutine, const struct go_action *action)
{
    return go_coverage_observer_action(context, goroutine, action);
}

static int add_model(struct go_coverage *coverage, struct tracestore *store, const struct go_program *program,
                     struct error *err)
{
    struct go_usage_row *rows;
    size_t count;
    int r = go_usage_rows(store, program->image_id, &rows, &count, err);

    if (r < 0)
        return r;
    r = go_coverage_add_model(coverage, rows, count);
    go_usage_rows_free(rows, count);
    return r < 0 ? error_no_memory(err) : 0;
}

static int read_program(struct go_coverage *coverage, uint32_t run, struct tracestore *store,
                        const struct go_program *program, struct go_places *places, struct error *err)
{
    CLEANUP(cleanup_observer) struct go_coverage_observer *observer = NULL;
    struct go_listener listener = {.event = on_event, .action = on_action};
    int r = add_model(coverage, store, program, err);

    if (r < 0)
        return r;
    if (go_coverage_observer_new(coverage, run, go_places_source(places), &observer) < 0)
        return error_no_memory(err);
    listener.context = observer;
    return go_feed(store, program, places, &listener, err);
}

int go_coverage_read_run(struct go_coverage *coverage, struct tracestore *store,
                         const struct tracestore_run *run, struct error *err)
{
    CLEANUP(cleanup_places) struct go_places *places = NULL;
    struct go_program *programs;
    uint32_t number = 0;
    size_t count;
    int r = go_programs(store, run->run_id, &programs, &count, err);

    if (r < 0)
        return r;
    if (go_places_new(store, &places) < 0 || go_coverage_add_run(coverage, run->name, &number) < 0)
        r = error_no_memory(err);
    if (!r && !count)
        r = error_say(err, -ENODATA, "reading the goroutines of run %s: none are recorded (record with --go)",
                      run->name);
    for (size_t i = 0; !r && i < count; i++)
        r = read_program(coverage, number, store, &programs[i], places, err);
    go_programs_free(programs, count);
    return r;
}
