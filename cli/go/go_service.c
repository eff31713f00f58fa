/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/go/go_service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/go/verdict.h"
#include "base/array.h"
#include "base/error.h"
#include "base/number.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "cli/common/signals.h"

enum { KEY_DURATION = 0x400, KEY_DETAIL, KEY_BUDGET, FIRST_SIGNAL = 128 };

DEFINE_CLEANUP(cleanup_iter, struct process_event_iter *, process_event_iter_free)
DEFINE_CLEANUP(cleanup_recorder, struct recorder *, recorder_free)

/* ------------------------------------------------------------------------------------ arguments */

static const struct argp_option service_options[] = {
    {"pid", 'p', "PID|NAME...", 0,
     "Check running services, by number or by name, instead of a run or a command", 3},
    {"duration", KEY_DURATION, "TIME", 0, "With -p: observe for this time (default: until Ctrl-C)", 3},
    {"detail", KEY_DETAIL, "lives|schedule|waiting|operations", 0,
     "With -p: events to record. lives: creation and end of goroutines; schedule: also when they wait; "
     "waiting (default): also operations on channels, wait groups, conditions, timers and contended "
     "locks; operations: also uncontended locks",
     3},
    {"budget", KEY_BUDGET, "PERCENT", 0,
     "With -p: limit of the recording cost, in percent of the service's own CPU time (default 5; 0: no "
     "limit). When it is exceeded, less is recorded for a while",
     3},
    {0},
};

void go_service_defaults(struct go_service_options *options)
{
    *options = (struct go_service_options){.detail = GO_DETAIL_WAITING, .budget = 0.05};
}

void go_service_options_release(struct go_service_options *options)
{
    pid_list_release(&options->pids);
    *options = (struct go_service_options){0};
}

static enum go_detail parse_detail(const char *text, const struct argp_state *state)
{
    static const char *const names[] = {
        [GO_DETAIL_LIVES] = "lives",
        [GO_DETAIL_SCHEDULE] = "schedule",
        [GO_DETAIL_WAITING] = "waiting",
        [GO_DETAIL_OPERATIONS] = "operations",
    };

    for (size_t i = GO_DETAIL_LIVES; i < ARRAY_SIZE(names); i++)
        if (!strcmp(names[i], text))
            return (enum go_detail)i;
    argp_error(state, "--detail must be lives, schedule, waiting or operations, not '%s'", text);
    return GO_DETAIL_NONE;
}

static double parse_percent(const char *text, const struct argp_state *state)
{
    double share = 0;

    if (!number_parse_share(text, &share))
        argp_error(state, "--budget must be a percentage, not '%s'", text);
    return 100 * share;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct go_service_options *options = state->input;

    switch (key) {
    case 'p':
        pid_list_parse(&options->pids, arg, state);
        return 0;
    case KEY_DURATION:
        options->duration_ns = cli_parse_duration(state, "--duration", arg, 1);
        return 0;
    case KEY_BUDGET:
        options->budget = parse_percent(arg, state) / 100;
        return 0;
    case KEY_DETAIL:
        options->detail = parse_detail(arg, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp go_service_argp = {.options = service_options, .parser = parse};

/* ------------------------------------------------------------------------------------ recording */

static bool no_functions(void *context, const char *path, enum image_kind kind)
{
    return false;
}

/* Every process must be a Go program: a verdict on another one would be an empty promise. */
static int attach_all(struct recorder *recorder, const struct go_service_options *options, struct error *err)
{
    int r = 0;

    for (size_t i = 0; !r && i < options->pids.count; i++) {
        const struct traced_image *image;
        bool go = false;

        r = recorder_attach(recorder, options->pids.items[i], err);
        for (image = recorder_images(recorder); !r && image; image = image->next) {
            go |= image->go != NULL;
            if (image->go_refusal)
                r = error_say(err, -ENOTSUP, "%s", image->go_refusal);
        }
        if (!r && !go)
            r = error_say(err, -ENOTSUP, "cannot check process %d: not a Go program",
                          (int)options->pids.items[i]);
    }
    return r;
}

static int record_from(struct recorder *recorder, const struct go_service_options *options, struct error *err)
{
    int r = attach_all(recorder, options, err);

    if (r) {
        recorder_detach(recorder);
        recorder_abandon(recorder, NULL);
        return r;
    }
    signals_stop(recorder, false);
    r = recorder_run(recorder, options->duration_ns, err);
    signals_ignore();
    if (!r)
        return recorder_close(recorder, err);
    recorder_detach(recorder);
    if (r == -ENOSPC)
        recorder_close_full(recorder, NULL);
    return r;
}

static int record(struct tracestore *store, const struct go_service_options *options, int64_t *ret_run_id,
                  struct error *err)
{
    CLEANUP(cleanup_recorder) struct recorder *recorder = NULL;
    const struct recorder_options recording = {
        .run.name = options->name,
        .run.command = "go check -p",
        .content.times = STREAM_TIMES_ANCHOR,
        .go.detail = options->detail,
        .go.budget.share = options->budget,
        .selected.want_image = no_functions,
        .targets.output = -1,
    };
    int r = recorder_open(store, &recording, &recorder, err);

    if (r)
        return r;
    *ret_run_id = recorder_run_id(recorder);
    return record_from(recorder, options, err);
}

/* ------------------------------------------------------------------------------------ grouping */

static bool is_runtime(void *context, uint32_t function)
{
    return go_is_runtime(go_service_place(context, function).function);
}

static bool is_timer(void *context, uint32_t site)
{
    return go_role_of(go_service_place(context, site).function) == GO_ROLE_TIMERS;
}

static int group(struct tracestore *store, struct go_service *service, struct error *err)
{
    CLEANUP(cleanup_iter) struct process_event_iter *iter = NULL;
    const struct go_program *program = service->program;
    const struct go_groups_options options = {
        .from_ns = service->from_ns,
        .until_ns = service->until_ns,
        .wait_reasons = program->wait_reasons,
        .wait_reason_count = program->wait_reason_count,
        .is_runtime = is_runtime,
        .is_timer = is_timer,
        .context = service,
    };
    struct process_event event;
    int r = process_event_iter_open(store, PROCESS_STREAM_GO, program->process_id, &iter, err);
    int failed = r < 0 ? 0 : go_groups_new(&options, &service->groups);

    while (r >= 0 && !failed && (r = process_event_iter_next(iter, &event, err)) == 0)
        failed = go_groups_event(service->groups, &event);
    if (r >= 0 && !failed)
        failed = go_groups_judge(service->groups, &service->grouping);
    if (failed)
        return error_set(err, failed, NULL, "grouping goroutines");
    return r < 0 ? r : 0;
}

/* When the process was attached to, and whether it has ended since. */
static int read_times(struct tracestore *store, const struct tracestore_run *run, struct go_service *service,
                      struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int r = cli_prepare(
        store, &row, err,
        "SELECT started_ns, ended_ns, coalesce(exit_status, -1) FROM processes WHERE process_id = ?1", 1,
        service->program->process_id);

    if (r == 0)
        r = cli_step(row, "nNi", err);
    if (r)
        return r < 0 ? r : error_say(err, -EBADMSG, "a process of the run is not in the store");
    service->from_ns = (uint64_t)sqlite3_column_int64(row, 0);
    service->ended = sqlite3_column_type(row, 1) != SQLITE_NULL;
    service->until_ns = service->ended ? (uint64_t)sqlite3_column_int64(row, 1) : run->ended_ns;
    service->exit_status = sqlite3_column_int(row, 2);
    return 0;
}

static enum go_verdict_kind verdict_of(const struct go_service *service)
{
    const struct go_grouping *grouping = &service->grouping;

    if (grouping->totals.has_fatal)
        return grouping->totals.fatal == GO_FATAL_DEADLOCK ? GO_VERDICT_GLOBAL_DEADLOCK : GO_VERDICT_CRASH;
    if (service->ended && service->exit_status >= FIRST_SIGNAL)
        return GO_VERDICT_CRASH;
    return grouping->count && grouping->groups[0].suspicion == GO_SUSPICION_LEAK ? GO_VERDICT_LEAK
                                                                                 : GO_VERDICT_PASS;
}

/* ------------------------------------------------------------------------------------ the whole */

struct services {
    struct go_program *programs;
    struct go_places *places;
    struct go_service *items;
    size_t count;
    enum go_verdict_kind verdict; /* the worst */
};

static void services_release(struct services *services)
{
    for (size_t i = 0; services->items && i < services->count; i++) {
        go_grouping_release(&services->items[i].grouping);
        go_groups_free(services->items[i].groups);
    }
    free(services->items);
    go_places_free(services->places);
    go_programs_free(services->programs, services->count);
}

static int group_all(struct tracestore *store, const struct tracestore_run *run, enum go_detail wanted,
                     struct services *services, struct error *err)
{
    int r = go_programs(store, run->run_id, &services->programs, &services->count, err);

    if (r < 0)
        return r;
    services->items = calloc(services->count + 1, sizeof(*services->items));
    if (!services->items || go_places_new(store, &services->places) < 0)
        return error_no_memory(err);
    for (size_t i = 0; r == 0 && i < services->count; i++) {
        struct go_service *service = &services->items[i];
        enum go_verdict_kind verdict;

        service->program = &services->programs[i];
        service->wanted = wanted;
        service->places = go_places_source(services->places);
        r = read_times(store, run, service, err);
        if (r == 0)
            r = group(store, service, err);
        verdict = verdict_of(service);
        if (verdict > services->verdict)
            services->verdict = verdict;
    }
    return r;
}

static void print(const struct tracestore_run *run, const struct services *services)
{
    const char *verdict = go_verdict_name(services->verdict);
    AUTO_JSON json_t *document = NULL;

    if (!cli.json) {
        go_service_text(stdout, verdict, services->items, services->count);
        return;
    }
    document = go_service_json(verdict, services->items, services->count);
    json_object_set_new(document, "run", json_integer(run->run_id));
    json_object_set_new(document, "name", cli_json_text(run->name));
    cli_json_print(document);
}

int go_service_check(const struct go_service_options *options)
{
    CLEANUP(services_release) struct services services = {0};
    AUTO_STORE struct tracestore *store = NULL;
    AUTO_RUN struct tracestore_run run = {0};
    struct error err = {0};
    int64_t run_id = 0;
    char name[24];
    int r = tracestore_open(cli.store_path, TRACESTORE_CREATE, &store, &err);

    if (!r)
        r = record(store, options, &run_id, &err);
    snprintf(name, sizeof(name), "%lld", (long long)run_id);
    if (!r)
        r = tracestore_find_run(store, name, &run, &err);
    if (!r)
        r = group_all(store, &run, options->detail, &services, &err);
    if (r < 0)
        return cli_fail(&err);
    print(&run, &services);
    return cli_finish(services.verdict == GO_VERDICT_PASS ? EXIT_NOTHING_FOUND : EXIT_FOUND);
}

/* ------------------------------------------------------------------------------------ words */

const char *go_suspicion_name(enum go_suspicion suspicion)
{
    static const char *const names[] = {"none", "grows", "still", "leak"};

    return suspicion < ARRAY_SIZE(names) ? names[suspicion] : "?";
}

struct go_place go_service_place(const struct go_service *service, uint32_t function_id)
{
    struct go_place place = {"", "", 0};

    if (function_id && service->places.find(service->places.context, function_id, &place) < 0)
        place = (struct go_place){"", "", 0};
    return place;
}

const char *go_service_reason(const struct go_service *service, const struct go_group *group)
{
    int64_t reason = group->wait_reason;

    if (reason < 0 || (uint64_t)reason >= service->program->wait_reason_count ||
        !service->program->wait_reasons[reason])
        return "";
    return service->program->wait_reasons[reason];
}
