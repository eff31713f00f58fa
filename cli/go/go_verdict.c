/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/go/go_verdict.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/path.h"
#include "cli/common/output.h"

DEFINE_CLEANUP(cleanup_iter, struct process_event_iter *, process_event_iter_free)

/* ------------------------------------------------------------------------------------------ judging */

struct judging {
    struct go_place_source places;
    const struct go_judge_listener *listener;
};

static bool is_runtime(void *context, uint32_t function)
{
    const struct judging *judging = context;
    struct go_place place;

    return judging->places.find(judging->places.context, function, &place) == 0 &&
           go_is_runtime(place.function);
}

static enum go_role role(void *context, uint32_t function)
{
    const struct judging *judging = context;
    struct go_place place;

    if (judging->places.find(judging->places.context, function, &place) < 0)
        return GO_ROLE_PROGRAM;
    return go_role_of(place.function);
}

static bool ignores_timer(void *context, uint32_t site)
{
    return role(context, site) >= GO_ROLE_TESTING;
}

static int on_action(void *context, const struct go_goroutine *goroutine, const struct go_action *action)
{
    const struct judging *judging = context;

    return judging->listener->on_action(judging->listener->context, goroutine, action);
}

static int replay_all(struct tracestore *store, int64_t process_id, struct go_replay *replay,
                      struct error *err)
{
    CLEANUP(cleanup_iter) struct process_event_iter *iter = NULL;
    struct process_event event;
    int r = process_event_iter_open(store, PROCESS_STREAM_GO, process_id, &iter, err);

    if (r < 0)
        return r;
    while ((r = process_event_iter_next(iter, &event, err)) == 0) {
        r = go_replay_event(replay, &event);
        if (r < 0)
            return error_set(err, r, NULL, "replaying the events of goroutines");
    }
    if (r > 0)
        r = go_replay_end(replay);
    return r;
}

/* How the process ended, by itself or by us (cli/go/go_session.c). */
static int read_end(struct tracestore *store, const struct go_program *program,
                    struct go_verdict_options *options, uint64_t *ret_ended_ns, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int r = cli_prepare(store, &row, err,
                        "SELECT exit_status, (SELECT value FROM tags WHERE run_id = ?2 AND "
                        "key = 'go.ended:' || ?3), ended_ns FROM processes WHERE process_id = ?1",
                        2, program->process_id, program->run_id);
    const char *ended;

    if (r == 0 && sqlite3_bind_text(row, 3, program->label, -1, SQLITE_STATIC) != SQLITE_OK)
        return error_no_memory(err), -ENOMEM;
    if (r == 0)
        r = cli_step(row, "ITN", err);
    if (r)
        return r < 0 ? r : 0;
    ended = (const char *)sqlite3_column_text(row, 1);
    *ret_ended_ns = (uint64_t)sqlite3_column_int64(row, 2);
    options->has_exit_status = sqlite3_column_type(row, 0) != SQLITE_NULL && !ended;
    options->exit_status = sqlite3_column_int(row, 0);
    options->timed_out = ended && !strcmp(ended, "timeout");
    return 0;
}

int go_judge(struct tracestore *store, const struct go_program *program, struct go_places *places,
             const struct go_judge_listener *listener, struct go_judged *ret_judged, struct error *err)
{
    struct judging judging = {go_places_source(places), listener};
    struct go_replay_options options = {
        .is_runtime = is_runtime,
        .ignores_timer = ignores_timer,
        .on_action = listener ? on_action : NULL,
        .wait_reasons = program->wait_reasons,
        .wait_reason_count = program->wait_reason_count,
        .context = &judging,
    };
    struct go_verdict_options verdict = {
        .role = role, .context = &judging, .operations = program->operations};
    int r = read_end(store, program, &verdict, &ret_judged->ended_ns, err);

    ret_judged->program = program;
    ret_judged->places = places;
    if (r == 0 && go_replay_new(&options, &ret_judged->replay) < 0)
        r = error_no_memory(err);
    if (r == 0)
        r = replay_all(store, program->process_id, ret_judged->replay, err);
    if (r < 0)
        return r;
    ret_judged->totals = go_replay_totals(ret_judged->replay);
    if (ret_judged->ended_ns < ret_judged->totals.last_ns)
        ret_judged->ended_ns = ret_judged->totals.last_ns;
    r = go_verdict_of(ret_judged->replay, &verdict, &ret_judged->verdict);
    return r < 0 ? error_set(err, r, NULL, "judging the goroutines") : 0;
}

void go_judged_release(struct go_judged *judged)
{
    go_replay_free(judged->replay);
    go_verdict_release(&judged->verdict);
    *judged = (struct go_judged){0};
}

int go_programs_of(struct tracestore *store, int64_t run_id, struct go_judged_run *ret_run, struct error *err)
{
    int r = go_programs(store, run_id, &ret_run->programs, &ret_run->count, err);

    if (r < 0)
        return r;
    if (!ret_run->count)
        return error_say(err, -ENOENT,
                         "run %" PRId64 ": no goroutines were recorded (record a Go program with --go)",
                         run_id);
    return go_places_new(store, &ret_run->places) < 0 ? error_no_memory(err) : 0;
}

int go_judge_run(struct tracestore *store, int64_t run_id, struct go_judged_run *ret_run, struct error *err)
{
    int r = go_programs_of(store, run_id, ret_run, err);

    if (r < 0)
        return r;
    ret_run->judged = calloc(ret_run->count, sizeof(*ret_run->judged));
    if (!ret_run->judged)
        return error_no_memory(err);
    for (size_t i = 0; r == 0 && i < ret_run->count; i++) {
        struct go_judged *judged = &ret_run->judged[i];

        r = go_judge(store, &ret_run->programs[i], ret_run->places, NULL, judged, err);
        if (judged->verdict.kind > ret_run->kind)
            ret_run->kind = judged->verdict.kind;
    }
    return r;
}

void go_judged_run_release(struct go_judged_run *run)
{
    for (size_t i = 0; run->judged && i < run->count; i++)
        go_judged_release(&run->judged[i]);
    free(run->judged);
    go_places_free(run->places);
    go_programs_free(run->programs, run->count);
    *run = (struct go_judged_run){0};
}

/* ------------------------------------------------------------------------------------------ words */

struct go_place go_judged_place(const struct go_judged *judged, uint32_t function_id)
{
    struct go_place_source source = go_places_source(judged->places);
    struct go_place place = {"", "", 0};

    if (function_id && source.find(source.context, function_id, &place) < 0)
        place = (struct go_place){"", "", 0};
    return place;
}

void go_judged_label(const struct go_judged *judged, uint64_t goroutine, char *text, size_t size)
{
    snprintf(text, size, "%s.g%" PRIu64, judged->program->label, goroutine);
}

void go_place_text(const struct go_place *place, char *text, size_t size)
{
    if (*place->file)
        snprintf(text, size, "%s:%d", path_file_name(place->file), place->line);
    else
        snprintf(text, size, "%s", *place->function ? place->function : "?");
}

const char *go_object_kind(enum go_op operation)
{
    switch (operation) {
    case GO_OP_CHAN_MAKE:
    case GO_OP_CHAN_SEND:
    case GO_OP_CHAN_RECV:
    case GO_OP_CHAN_RANGE:
    case GO_OP_CHAN_CLOSE:
        return "channel";
    case GO_OP_SELECT:
        return "select";
    case GO_OP_MUTEX_LOCK:
    case GO_OP_MUTEX_TRYLOCK:
    case GO_OP_MUTEX_UNLOCK:
        return "mutex";
    case GO_OP_RWMUTEX_LOCK:
    case GO_OP_RWMUTEX_TRYLOCK:
    case GO_OP_RWMUTEX_UNLOCK:
    case GO_OP_RWMUTEX_RLOCK:
    case GO_OP_RWMUTEX_TRYRLOCK:
    case GO_OP_RWMUTEX_RUNLOCK:
        return "rwmutex";
    case GO_OP_WAITGROUP_ADD:
    case GO_OP_WAITGROUP_DONE:
    case GO_OP_WAITGROUP_WAIT:
        return "wait group";
    case GO_OP_COND_WAIT:
    case GO_OP_COND_SIGNAL:
    case GO_OP_COND_BROADCAST:
        return "condition";
    case GO_OP_ONCE_DO:
        return "once";
    default:
        return "";
    }
}

void go_action_object(const struct go_action *action, char *text, size_t size)
{
    const char *kind = action ? go_object_kind(action->operation) : "";

    if (!*kind)
        snprintf(text, size, "%s", "");
    else if (action->operation == GO_OP_SELECT && action->case_count == 1)
        snprintf(text, size, "select of channel 0x%" PRIx64, action->cases[0].object);
    else if (action->operation == GO_OP_SELECT)
        snprintf(text, size, "select of %" PRId64 " channels", action->value);
    else if (action->object)
        snprintf(text, size, "%s 0x%" PRIx64, kind, action->object);
    else
        snprintf(text, size, "nil %s", kind);
}

const char *go_judged_reason(const struct go_judged *judged, const struct go_goroutine *goroutine)
{
    const struct go_program *program = judged->program;
    int64_t reason = goroutine->wait_reason;

    if (reason < 0 || (uint64_t)reason >= program->wait_reason_count || !program->wait_reasons[reason])
        return "";
    return program->wait_reasons[reason];
}

const char *go_state_text(enum go_state state)
{
    static const char *const names[] = {"unknown", "runnable", "running", "blocked", "ended"};

    return state < ARRAY_SIZE(names) ? names[state] : "?";
}

uint32_t go_goroutine_site(const struct go_goroutine *goroutine)
{
    if (goroutine->action_count && goroutine->actions[0].site)
        return goroutine->actions[0].site;
    return goroutine->function;
}

const char *go_unblock_text(enum go_unblock unblock)
{
    static const char *const names[] = {
        "",
        "running or runnable",
        "sleeping",
        "waiting for the network",
        "waiting for the runtime or the standard library",
        "a pending timer may unblock it",
        "a signal may unblock it",
        "another goroutine may unblock it",
    };

    return unblock < ARRAY_SIZE(names) ? names[unblock] : "";
}

const char *go_wait_for_text(enum go_wait_for_reason reason)
{
    static const char *const names[] = {"holds", "waits to write", "only peer", "joined", "only signaller"};

    return reason < ARRAY_SIZE(names) ? names[reason] : "";
}
