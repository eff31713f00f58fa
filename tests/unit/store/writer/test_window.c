/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A flight recorder's window, and what is committed out of it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "store/writer/window.h"
#include "tests/unit/store/fixture.h"

#define SECOND ((uint64_t)1000000000)
#define BEGIN (1000 * SECOND)
#define WINDOW (16 * SECOND)
#define FUNCTIONS 40
#define SITES 7

/* Everything that a thread ever did. */
struct logged {
    uint32_t function; /* 0: a return, TRACESTORE_LOST_FUNCTION: a loss */
    uint32_t site;
    bool assumed;
    uint64_t ns;
    uint32_t depth; /* as struct event has it */
};

struct actor {
    struct thread_writer *thread;
    int64_t number; /* its label is "0.NUMBER" */
    enum trace_returns returns;
    bool call_sites;
    struct logged *log;
    size_t count, capacity;
    uint32_t *open;
    size_t depth, open_capacity;
    uint64_t anchor_ns;
};

struct flight {
    struct fixture fixture; /* the window */
    struct tracestore *store;
    char path[128];
    struct generator generator;
    struct actor actors[5];
    size_t actor_count;
    uint32_t sites[SITES];
    int64_t originals[256]; /* by function of the store, as far as they were asked for */
    uint64_t now;
};

static void append(struct flight *flight, struct actor *actor, uint64_t ns)
{
    struct logged logged = {.ns = ns};
    uint32_t choice = generator_below(&flight->generator, 100);
    int r;

    if (choice == 99) {
        logged.function = TRACESTORE_LOST_FUNCTION;
        logged.depth = (uint32_t)actor->depth;
        r = thread_writer_lost(actor->thread, ns, 3, "ring full", NULL);
    } else if (choice < 48 && actor->depth) {
        logged.depth = (uint32_t)--actor->depth;
        r = thread_writer_return(actor->thread);
    } else {
        logged.function = 1 + generator_below(&flight->generator, FUNCTIONS);
        logged.depth = (uint32_t)actor->depth;
        logged.assumed = choice > 90 && actor->returns != TRACE_RETURNS_NONE;
        logged.site = actor->call_sites ? flight->sites[logged.function % SITES] : 0;
        r = logged.assumed ? thread_writer_call_assumed(actor->thread, logged.function, logged.site)
                           : thread_writer_call_from(actor->thread, logged.function, logged.site);
        if (actor->returns != TRACE_RETURNS_NONE) {
            cr_assert_eq(array_reserve(&actor->open, &actor->open_capacity, actor->depth + 1), 0);
            actor->open[actor->depth++] = logged.function;
        }
    }
    cr_assert_eq(r, 0);
    cr_assert_eq(array_reserve(&actor->log, &actor->capacity, actor->count + 1), 0);
    actor->log[actor->count++] = logged;
}

/* One second: `events` of the actor, spread over it, some with times. */
static void act(struct flight *flight, struct actor *actor, size_t events)
{
    for (size_t i = 0; i < events; i++) {
        uint64_t ns = flight->now + SECOND * i / events;

        if (!i || generator_below(&flight->generator, 4) == 0)
            cr_assert_eq(thread_writer_anchor(actor->thread, ns), 0);
        append(flight, actor, ns);
    }
}

static struct actor *add_actor(struct flight *flight, enum trace_returns returns, bool call_sites)
{
    struct actor *actor = &flight->actors[flight->actor_count];
    char label[16];

    snprintf(label, sizeof(label), "0.%zu", flight->actor_count);
    const struct trace_thread_description description = {.process_id = flight->fixture.process_id,
                                                         .label = label,
                                                         .returns = returns,
                                                         .started_ns = flight->now,
                                                         .call_sites = call_sites};
    *actor = (struct actor){
        .number = (int64_t)flight->actor_count++, .returns = returns, .call_sites = call_sites};
    cr_assert_eq(trace_writer_thread(flight->fixture.writer, &description, &actor->thread, NULL), 0);
    return actor;
}

static void begin(struct flight *flight, uint64_t seed, size_t bytes)
{
    const struct trace_writer_options options = {
        .segment_bytes = 400, .segment_events = 3000, .window_ns = WINDOW, .window_bytes = bytes};

    *flight = (struct flight){.generator = {seed}, .now = BEGIN};
    fixture_open(&flight->fixture, &options);
    fixture_functions(&flight->fixture, FUNCTIONS);
    for (uint32_t i = 0; i < SITES; i++) {
        const struct trace_call_site_description site = {
            .image_id = flight->fixture.image_id, .address = 0x1000 + i, .function_id = i + 1};

        cr_assert_eq(trace_writer_call_site(flight->fixture.writer, &site, &flight->sites[i], NULL), 0);
    }
    snprintf(flight->path, sizeof(flight->path), "%s/main.db", flight->fixture.folder);
    cr_assert_eq(tracestore_open(flight->path, TRACESTORE_CREATE, &flight->store, NULL), 0);
}

static void end(struct flight *flight)
{
    for (size_t i = 0; i < flight->actor_count; i++) {
        free(flight->actors[i].log);
        free(flight->actors[i].open);
    }
    tracestore_free(flight->store);
    unlink(flight->path);
    fixture_close(&flight->fixture);
}

static void flush(struct flight *flight)
{
    struct error err = {0};

    flight->now += SECOND;
    cr_assert_eq(trace_writer_flush(flight->fixture.writer, flight->now, &err), 0, "%s", err.message);
}

static struct window_committed commit(struct flight *flight)
{
    const struct window_commit asked = {.name = "kept", .trigger = "a test", .window_ns = WINDOW};
    struct window_committed committed = {0};
    struct error err = {0};

    cr_assert_eq(window_commit(flight->fixture.store, flight->store, &asked, &committed, &err), 0, "%s",
                 err.message);
    return committed;
}

static void say_problem(void *context, const struct tracestore_problem *problem)
{
    cr_log_error("segment %lld: %s", (long long)problem->segment_id, problem->text);
}

/* ------------------------------------------------------------------------------------------ what must hold
 */

/* The loss in a committed stream: how many events are missing, and whether that is for the window. */
static uint64_t loss_at(struct tracestore *store, int64_t thread_id, uint64_t seq, bool *ret_window)
{
    char sql[256];

    snprintf(sql, sizeof(sql), "SELECT cause = '%s' FROM losses WHERE thread_id = %lld AND seq = %llu",
             TRACE_LOSS_WINDOW, (long long)thread_id, (unsigned long long)seq);
    *ret_window = ask(tracestore_db(store), sql) == 1;
    snprintf(sql, sizeof(sql), "SELECT count FROM losses WHERE thread_id = %lld AND seq = %llu",
             (long long)thread_id, (unsigned long long)seq);
    return (uint64_t)ask(tracestore_db(store), sql);
}

/* The function's number in the window's store, by its name. */
static int64_t original(struct flight *flight, uint32_t function)
{
    char sql[256], name[64] = "";
    sqlite3_stmt *row;

    cr_assert_lt(function, ARRAY_SIZE(flight->originals));
    if (flight->originals[function])
        return flight->originals[function];

    sqlite3_prepare_v2(tracestore_db(flight->store), "SELECT name FROM functions WHERE function_id = ?1", -1,
                       &row, NULL);
    sqlite3_bind_int64(row, 1, function);
    cr_assert_eq(sqlite3_step(row), SQLITE_ROW);
    snprintf(name, sizeof(name), "%s", (const char *)sqlite3_column_text(row, 0));
    sqlite3_finalize(row);
    snprintf(sql, sizeof(sql), "SELECT function_id FROM functions WHERE name = '%s'", name);
    flight->originals[function] = ask(tracestore_db(flight->fixture.store), sql);
    return flight->originals[function];
}

/* An event in the store against what the thread did at that place. */
static void expect_event(struct flight *flight, const struct actor *actor, const struct event *event,
                         size_t at)
{
    const struct logged *logged = &actor->log[at];
    uint64_t until = event->ns + event->ns_error;

    cr_assert_lt(at, actor->count);
    if (event->kind == EVENT_LOST) {
        cr_assert_eq(logged->function, TRACESTORE_LOST_FUNCTION);
    } else if (event->kind == EVENT_RETURN) {
        cr_assert_eq(logged->function, 0, "event %zu", at);
    } else {
        cr_assert_eq(original(flight, event->function), logged->function, "event %zu", at);
        cr_assert_eq(event->assumed, logged->assumed, "event %zu", at);
        cr_assert_eq(event->call_site != 0, logged->site != 0, "event %zu", at);
    }
    cr_assert_eq(event->depth, actor->returns == TRACE_RETURNS_NONE ? 0 : logged->depth, "event %zu", at);
    cr_assert(event->ns <= logged->ns && logged->ns <= until, "event %zu at %llu, not %llu to %llu", at,
              (unsigned long long)logged->ns, (unsigned long long)event->ns, (unsigned long long)until);
}

/* Events that stand for those before the window: the first segment, when anything is missing. */
static uint64_t head_of(struct tracestore *store, int64_t thread_id)
{
    char sql[256];

    snprintf(sql, sizeof(sql),
             "SELECT event_count FROM segments WHERE thread_id = %lld AND first_seq = 0 AND EXISTS"
             " (SELECT 1 FROM losses l WHERE l.thread_id = %lld AND cause = '%s')",
             (long long)thread_id, (long long)thread_id, TRACE_LOSS_WINDOW);
    return (uint64_t)ask(tracestore_db(store), sql); /* -1: none */
}

/* Walks the committed stream beside the log: where it says that events are missing they are passed over. */
static void expect_suffix(struct flight *flight, const struct actor *actor, int64_t thread_id,
                          const struct window_committed *committed)
{
    struct event_iter *iter;
    struct event event;
    size_t at = 0, kept_from = actor->count;
    uint64_t head = head_of(flight->store, thread_id);
    bool in_head = true;

    cr_assert_eq(event_iter_open(flight->store, thread_id, 0, &iter, NULL), 0);
    while (event_iter_next(iter, &event, NULL) == 0) {
        bool window = false;
        uint64_t missing =
            event.kind == EVENT_LOST ? loss_at(flight->store, thread_id, event.seq, &window) : 0;

        if (window) {
            cr_assert(in_head);
            for (uint64_t i = 0; i < missing; i++, at++)
                cr_assert_leq(actor->log[at].ns, committed->from_ns, "event %zu was kept", at);
            continue;
        }
        if (event.seq == head)
            kept_from = at;
        in_head &= event.kind == EVENT_CALL;
        expect_event(flight, actor, &event, at++);
    }
    event_iter_free(iter);
    cr_assert_eq(at, actor->count, "0.%lld: %zu of %zu", (long long)actor->number, at, actor->count);
    if (kept_from < actor->count) /* no more than the window, the part that a segment is, and two flushes */
        cr_assert_geq(actor->log[kept_from].ns + WINDOW + WINDOW / 8 + 3 * SECOND, committed->to_ns,
                      "0.%lld keeps %.1f s", (long long)actor->number,
                      (double)(committed->to_ns - actor->log[kept_from].ns) / 1e9);
}

/* What the store says of the calls that are open at the end. */
static void expect_open(struct flight *flight, const struct actor *actor, int64_t thread_id)
{
    char sql[160];
    bool lost = false;

    for (size_t i = 0; i < actor->count; i++)
        lost |= actor->log[i].function == TRACESTORE_LOST_FUNCTION;
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM calls WHERE thread_id = %lld AND state <> 'returned'",
             (long long)thread_id);
    if (actor->returns != TRACE_RETURNS_NONE)
        cr_assert_eq(ask(tracestore_db(flight->store), sql), (int64_t)actor->depth);
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM calls WHERE thread_id = %lld AND state = 'open'",
             (long long)thread_id);
    if (actor->returns == TRACE_RETURNS_PROBED && !lost)
        cr_assert_eq(ask(tracestore_db(flight->store), sql), (int64_t)actor->depth);
}

static void expect_committed(struct flight *flight, const struct window_committed *committed)
{
    uint64_t segments;

    for (size_t i = 0; i < flight->actor_count; i++) {
        const struct actor *actor = &flight->actors[i];
        char sql[160];
        int64_t thread_id;

        snprintf(sql, sizeof(sql), "SELECT thread_id FROM threads WHERE run_id = %lld AND label = '0.%zu'",
                 (long long)committed->run_id, i);
        thread_id = ask(tracestore_db(flight->store), sql);
        if (!actor->count) {
            cr_assert_eq(thread_id, -1);
            continue;
        }
        cr_assert_gt(thread_id, 0);
        expect_suffix(flight, actor, thread_id, committed);
        expect_open(flight, actor, thread_id);
    }
    cr_assert_eq(tracestore_verify(flight->store, say_problem, NULL, &segments, NULL), 0);
    cr_assert_eq(tracestore_delete_run(flight->store, committed->run_id, NULL), 0);
    memset(flight->originals, 0, sizeof(flight->originals));
}

/* Functions of the store have other numbers than those of the window. */
static void make_other_functions(struct flight *flight)
{
    const struct trace_run_description run = {.name = "before", .command = "x", .started_ns = 1};
    const struct trace_image_description image = {.path = "/other", .build_id = "", .kind = "main"};
    struct trace_writer *writer;
    int64_t image_id;
    uint32_t id;

    cr_assert_eq(trace_writer_begin(flight->store, &run, NULL, &writer, NULL), 0);
    cr_assert_eq(trace_writer_image(writer, &image, &image_id, NULL), 0);
    for (int i = 0; i < 50; i++) {
        char name[16];

        snprintf(name, sizeof(name), "other%d", i);
        const struct trace_function_description function = {.name = name, .address = (uint64_t)i};
        cr_assert_eq(trace_writer_function(writer, image_id, &function, &id, NULL), 0);
    }
    cr_assert_eq(trace_writer_end(writer, 2, 0, NULL), 0);
    trace_writer_free(writer);
}

/* What is committed is the end of what was recorded, at whatever moment. */
static void commit_now_and_then(uint64_t seed, bool other_functions)
{
    struct flight flight;

    begin(&flight, seed, 0);
    if (other_functions)
        make_other_functions(&flight);
    add_actor(&flight, TRACE_RETURNS_PROBED, false);
    add_actor(&flight, TRACE_RETURNS_INFERRED, true);
    add_actor(&flight, TRACE_RETURNS_NONE, false);
    add_actor(&flight, TRACE_RETURNS_PROBED, true);
    add_actor(&flight, TRACE_RETURNS_PROBED, false);
    for (int second = 0; second < 150; second++) {
        act(&flight, &flight.actors[0], 90);
        act(&flight, &flight.actors[1], generator_below(&flight.generator, 60));
        act(&flight, &flight.actors[2], second % 10 == 0 ? 40 : 0);
        act(&flight, &flight.actors[3], second < 20 || second == 100 ? 50 : 0); /* rests, comes back, rests */
        act(&flight, &flight.actors[4], second % 40 == 7 ? 3 : 0);
        flush(&flight);
        if (generator_below(&flight.generator, 20) == 0 || second == 99 || second == 100 || second == 149) {
            struct window_committed committed = commit(&flight);

            expect_committed(&flight, &committed);
        }
    }
    end(&flight);
}

Test(window, commits_are_the_end_of_the_trace)
{
    for (uint64_t seed = 1; seed < 3; seed++)
        commit_now_and_then(seed, false);
}

Test(window, commits_into_a_store_with_other_functions)
{
    commit_now_and_then(7, true);
}

/* Before the window is full nothing is missing, and the run says so. */
Test(window, a_short_recording_is_complete)
{
    struct flight flight;
    struct window_committed committed;
    struct tracestore_totals totals;

    begin(&flight, 3, 0);
    add_actor(&flight, TRACE_RETURNS_PROBED, false);
    act(&flight, &flight.actors[0], 5); /* too few for one of the losses */
    flush(&flight);
    committed = commit(&flight);
    cr_assert_eq(tracestore_run_totals(flight.store, committed.run_id, &totals, NULL), 0);
    cr_assert_eq(totals.events, 5);
    cr_assert(totals.complete);
    cr_assert_eq(ask(tracestore_db(flight.store), "SELECT count(*) FROM tags WHERE key LIKE 'window:%'"), 0);
    expect_committed(&flight, &committed);
    end(&flight);
}

/* However long it goes on, rows and bytes stay where they are; so do those of threads and processes that come
 * and go. */
Test(window, stays_as_large_as_it_is)
{
    struct flight flight;
    int64_t early = 0, late = 0;

    begin(&flight, 5, 0);
    for (int second = 0; second < 400; second++) {
        struct actor *actor;

        flight.actor_count = 0;
        actor = add_actor(&flight, TRACE_RETURNS_PROBED, false);
        act(&flight, actor, 200);
        flush(&flight);
        cr_assert_eq(thread_writer_end(actor->thread, flight.now, NULL), 0);
        free(actor->log);
        free(actor->open);
        *actor = (struct actor){0};
        if (second == 100)
            early = ask(tracestore_db(flight.fixture.store),
                        "SELECT count(*) + (SELECT count(*) FROM threads) + (SELECT count(*) FROM losses)"
                        " FROM segments");
    }
    late =
        ask(tracestore_db(flight.fixture.store),
            "SELECT count(*) + (SELECT count(*) FROM threads) + (SELECT count(*) FROM losses) FROM segments");
    cr_assert_gt(early, 0);
    cr_assert_leq(late, early + early / 2);
    cr_assert_leq(ask(tracestore_db(flight.fixture.store), "SELECT count(*) FROM threads"), 25);
    flight.actor_count = 0;
    end(&flight);
}

/* A limit of bytes makes the window shorter, which is said; what is kept is still right. */
Test(window, size_is_limited)
{
    struct flight flight;
    struct window_committed committed;

    begin(&flight, 6, 20000);
    add_actor(&flight, TRACE_RETURNS_PROBED, false);
    add_actor(&flight, TRACE_RETURNS_PROBED, false);
    for (int second = 0; second < 60; second++) {
        act(&flight, &flight.actors[0], 700);
        act(&flight, &flight.actors[1], 30);
        flush(&flight);
        cr_assert_leq(trace_writer_window(flight.fixture.writer).bytes, 20000 + 8000);
    }
    cr_assert(trace_writer_window(flight.fixture.writer).too_much);
    committed = commit(&flight);
    cr_assert_gt(committed.from_ns, flight.now - WINDOW);
    cr_assert_eq(ask(tracestore_db(flight.store),
                     "SELECT count(*) FROM tags WHERE key = 'flight' AND value LIKE '%shorter%'"),
                 1);
    expect_committed(&flight, &committed);
    end(&flight);
}

/* A recorder that is killed leaves its window, which becomes a run. */
Test(window, is_recovered_when_its_recorder_is_dead)
{
    struct flight flight;
    struct tracestore *window;
    struct error err = {0};

    uint64_t runs = 9;
    pid_t pid;

    begin(&flight, 8, 0);
    pid = fork();
    if (!pid) {
        const struct trace_run_description run = {.name = "flown", .command = "./f", .started_ns = BEGIN};
        const struct trace_writer_options options = {.window_ns = WINDOW};
        const struct trace_process_description process = {.pid = 7, .rank = -1, .exe = "f", .argv = "f"};
        struct trace_thread_description thread = {.label = "0.0", .returns = TRACE_RETURNS_PROBED};
        const struct trace_image_description image = {.path = "/f", .build_id = "", .kind = "main"};
        const struct trace_function_description function = {.name = "f1", .address = 1};
        struct trace_writer *writer;
        struct thread_writer *made;
        int64_t image_id;
        uint32_t id;
        char *path;

        if (window_create(flight.path, &path, &window, NULL) ||
            trace_writer_begin(window, &run, &options, &writer, NULL) ||
            trace_writer_process(writer, &process, &thread.process_id, NULL) ||
            trace_writer_thread(writer, &thread, &made, NULL) ||
            trace_writer_image(writer, &image, &image_id, NULL) ||
            trace_writer_function(writer, image_id, &function, &id, NULL))
            _exit(1);
        for (int i = 0; i < 100; i++)
            if (thread_writer_anchor(made, BEGIN + (uint64_t)i * SECOND) || thread_writer_call(made, id) ||
                trace_writer_flush(writer, BEGIN + (uint64_t)i * SECOND + 1, NULL))
                _exit(2);
        _exit(0);
    }
    cr_assert_eq(window_recover(flight.path, flight.store, &runs, &err), 0, "%s", err.message);
    int status;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0);
    cr_assert_eq(window_recover(flight.path, flight.store, &runs, &err), 0, "%s", err.message);
    cr_assert_eq(runs, 1);
    cr_assert_eq(ask(tracestore_db(flight.store),
                     "SELECT count(*) FROM runs WHERE name = 'flown' AND ended_ns NOTNULL"),
                 1);
    cr_assert_eq(ask(tracestore_db(flight.store), "SELECT count(*) FROM losses WHERE cause = 'unfinished'"),
                 1);
    cr_assert_eq(ask(tracestore_db(flight.store), "SELECT max(depth) FROM calls"), 99);
    cr_assert_eq(tracestore_verify(flight.store, say_problem, NULL, NULL, NULL), 0);
    cr_assert_eq(window_recover(flight.path, flight.store, &runs, &err), 0);
    cr_assert_eq(runs, 0, "the window's files are gone");
    end(&flight);
}
