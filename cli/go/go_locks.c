/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl go locks: deadlocks that could happen, by the orders in which goroutines took locks. */
#include "cli/go/go_locks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/go/feed.h"
#include "base/error.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/analysis/lock_report.h"
#include "cli/common/output.h"
#include "cli/go/go_commands.h"

DEFINE_CLEANUP(cleanup_order, struct lock_order *, lock_order_free)
DEFINE_CLEANUP(cleanup_places, struct go_places *, go_places_free)

/* ------------------------------------------------------------------------------------------ telling */

static int find_both(const struct lock_dependency *step, struct go_place_source places,
                     struct go_place *ret_held, struct go_place *ret_wanted)
{
    int r = places.find(places.context, step->held_site, ret_held);

    return r < 0 ? r : places.find(places.context, step->wanted_site, ret_wanted);
}

static void put_step(const struct lock_dependency *step, const char *label, const struct go_place *held,
                     const struct go_place *wanted)
{
    text_print(stdout, "  %s.g%" PRIu64 " takes lock 0x%" PRIx64 "%s at %s:%d (%s)\n", label, step->agent,
               step->wanted, step->wanted_shared ? " to read" : "", path_file_name(wanted->file),
               wanted->line, wanted->function);
    if (step->held)
        text_print(stdout, "    while it holds 0x%" PRIx64 "%s, taken at %s:%d (%s)\n", step->held,
                   step->held_shared ? " to read" : "", path_file_name(held->file), held->line,
                   held->function);
    else
        puts(
            "    to write: in between, the writer waits for the reader, and the reader waits for "
            "the writer");
}

int go_locks_text(const struct lock_cycle *cycle, const char *label, struct go_place_source places)
{
    lock_report_heading(cycle->happened);
    for (size_t i = 0; i < cycle->count; i++) {
        struct go_place held, wanted;
        int r = find_both(&cycle->steps[i], places, &held, &wanted);

        if (r < 0)
            return r;
        put_step(&cycle->steps[i], label, &held, &wanted);
    }
    return 0;
}

static json_t *lock_json(uint64_t object, bool shared, const struct go_place *place)
{
    return lock_report_json(object, shared, place->function, place->file, place->line);
}

json_t *go_locks_json(const struct lock_cycle *cycle, const char *label, struct go_place_source places)
{
    json_t *steps = json_array();

    for (size_t i = 0; i < cycle->count; i++) {
        const struct lock_dependency *step = &cycle->steps[i];
        struct go_place held, wanted;
        char goroutine[64];

        if (find_both(step, places, &held, &wanted) < 0) {
            json_decref(steps);
            return NULL;
        }
        snprintf(goroutine, sizeof(goroutine), "%s.g%" PRIu64, label, step->agent);
        json_array_append_new(
            steps, json_pack("{s:s, s:o, s:o}", "goroutine", goroutine, "holds",
                             step->held ? lock_json(step->held, step->held_shared, &held) : json_null(),
                             "takes", lock_json(step->wanted, step->wanted_shared, &wanted)));
    }
    return json_pack("{s:s, s:b, s:o}", "danger",
                     cycle->danger == LOCK_READ_AGAIN ? "read again" : "lock order", "happened",
                     cycle->happened, "steps", steps);
}

/* ------------------------------------------------------------------------------------------ the run */

static int on_event(void *context, const struct go_replay *replay, const struct process_event *event)
{
    (void)replay;
    return go_lock_order_event(context, event);
}

static int on_action(void *context, const struct go_goroutine *goroutine, const struct go_action *action)
{
    return go_lock_order_action(context, goroutine, action);
}

static int print_cycle(struct lock_report *report, const struct lock_cycle *cycle, const char *label,
                       struct go_place_source places)
{
    json_t *object;

    report->count++;
    if (!report->cycles)
        return go_locks_text(cycle, label, places);
    object = go_locks_json(cycle, label, places);
    return object && !json_array_append_new(report->cycles, object) ? 0 : -ENOMEM;
}

int go_locks_of(struct tracestore *store, const struct go_program *program, struct go_places *places,
                struct lock_cycle **ret_cycles, size_t *ret_count, bool *ret_complete, struct error *err)
{
    CLEANUP(cleanup_order) struct lock_order *order = NULL;
    struct go_listener listener = {.event = on_event, .action = on_action};
    int r;

    if (lock_order_new(&order) < 0)
        return error_no_memory(err);
    listener.context = order;
    r = go_feed(store, program, places, &listener, err);
    if (r < 0)
        return r;
    *ret_complete = lock_order_complete(order);
    r = lock_order_cycles(order, ret_cycles, ret_count);
    return r < 0 ? error_set(err, r, NULL, "reading the locks of goroutines") : 0;
}

static int read_program(struct tracestore *store, const struct go_program *program, struct go_places *places,
                        struct lock_report *report, struct error *err)
{
    AUTO_FREE struct lock_cycle *cycles = NULL;
    size_t count = 0;
    bool complete = true;
    int r = go_locks_of(store, program, places, &cycles, &count, &complete, err);

    if (r < 0)
        return r;
    for (size_t i = 0; !r && i < count; i++)
        r = print_cycle(report, &cycles[i], program->label, go_places_source(places));
    report->complete &= complete;
    return r < 0 ? error_set(err, r, NULL, "reading the locks of goroutines") : 0;
}

static int read_run(const char *argument, struct lock_report *report, struct error *err)
{
    CLEANUP(cleanup_places) struct go_places *places = NULL;
    AUTO_STORE struct tracestore *store = NULL;
    AUTO_RUN struct tracestore_run run = {0};
    struct go_program *programs = NULL;
    size_t count = 0;
    int r = cli_open_run(argument, TRACESTORE_READ, &store, &run, err);

    if (r < 0)
        return r;
    r = go_programs(store, run.run_id, &programs, &count, err);
    if (r < 0)
        return r;
    if (!count)
        r = error_say(err, -ENODATA, "reading the goroutines of run %s: none are recorded (record with --go)",
                      run.name);
    else if (go_places_new(store, &places) < 0)
        r = error_no_memory(err);
    for (size_t i = 0; !r && i < count; i++)
        r = read_program(store, &programs[i], places, report, err);
    go_programs_free(programs, count);
    return r;
}

static const struct argp argp = {
    .parser = lock_report_parse,
    .args_doc = "RUN",
    .doc =
        "Report potential deadlocks: goroutines that took the same locks in inconsistent order, even if "
        "they did not collide in this run.\vNot reported: lock orders within one goroutine, of "
        "goroutines that did not exist at the same time, under a common lock that both hold (a gate), "
        "and readers waiting for readers. A goroutine that locks a lock that it already holds is "
        "reported by 'go check'. A repeated read lock is reported if another goroutine writes.",
    .children = cli_common_children,
};

static int run(int argc, char **argv)
{
    return lock_report_run(&go_locks_command, argc, argv, read_run,
                           "the limit of analysed lock orders was reached");
}

const struct command go_locks_command = {
    .name = "go locks",
    .summary = "report potential deadlocks (inconsistent lock order)",
    .argp = &argp,
    .examples =
        "Record a Go program, and report potential deadlocks:\n"
        "  tracectl record --go -- ./server\n"
        "  tracectl go locks latest\n",
    .run = run,
};
