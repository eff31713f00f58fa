/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Goroutine events in what is done with a store as a whole: deleting, summing up, checking, salvaging. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "store/streams/sync_events.h"
#include "tests/unit/store/go_fixture.h"

#define COUNT 70000u /* two segments */

static struct process_event *events;

static void append(struct process_writer *go, size_t count)
{
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(process_writer_append(go, &events[i]), 0);
}

/* A store with a run of goroutine events; they name functions 5 to 24 of image 1. */
static void open_run(struct fixture *fixture)
{
    struct generator generator = {4};
    struct error err = {0};

    events = calloc(COUNT, sizeof(*events));
    go_events_of_program(&generator, 6, events, COUNT);
    fixture_open(fixture, NULL);
    fixture_functions(fixture, 30);
    append(fixture_go_program(fixture), COUNT);
    cr_assert_eq(trace_writer_end(fixture->writer, 6000, 0, &err), 0, "%s", err.message);
}

static void close_run(struct fixture *fixture)
{
    free(events);
    fixture_close(fixture);
}

static void keep_problem(void *context, const struct tracestore_problem *problem)
{
    *(struct tracestore_problem *)context = *problem;
}

static int verify(struct tracestore *store, struct tracestore_problem *ret_last)
{
    uint64_t segments = 0;
    struct error err = {0};
    int problems = tracestore_verify(store, keep_problem, ret_last, &segments, &err);

    cr_assert_geq(problems, 0, "%s", err.message);
    cr_assert_eq((int64_t)segments, ask(tracestore_db(store), "SELECT count(*) FROM process_segments"));
    return problems;
}

Test(go_keeping, totals_count_them)
{
    struct tracestore_totals totals;
    struct fixture fixture;
    struct error err = {0};

    open_run(&fixture);
    cr_assert_eq(tracestore_run_totals(fixture.store, 1, &totals, &err), 0, "%s", err.message);
    cr_assert_eq(totals.go_events, COUNT);
    cr_assert_eq(totals.events, 0);
    cr_assert_eq((int64_t)totals.stored_bytes,
                 ask(tracestore_db(fixture.store), "SELECT sum(length(data)) FROM process_segments"));
    cr_assert(totals.complete);
    close_run(&fixture);
}

/* Another run that is deleted takes no function with it that these events name; their own run takes all. */
Test(go_keeping, functions_stay_as_long_as_they_are_named)
{
    const struct trace_run_description again = {.name = "again", .command = "x", .started_ns = 1};
    struct trace_writer *writer = NULL;
    struct fixture fixture;
    struct error err = {0};
    sqlite3 *db;

    open_run(&fixture);
    db = tracestore_db(fixture.store);
    cr_assert_eq(trace_writer_begin(fixture.store, &again, NULL, &writer, &err), 0);
    cr_assert_eq(trace_writer_end(writer, 2, 0, &err), 0);
    trace_writer_free(writer);
    run_sql(db, "INSERT INTO images VALUES (77, 'unused', '', 'main')");
    cr_assert_eq(tracestore_delete_run(fixture.store, 2, &err), 0, "%s", err.message);
    cr_assert_eq(ask(db, "SELECT count(*) FROM images"), 1);
    cr_assert_eq(ask(db, "SELECT count(*) FROM functions"), 30);
    run_sql(db, "DELETE FROM go_programs"); /* the lists alone keep them, too */
    run_sql(db,
            "INSERT INTO runs (run_id, name, command, host, kernel, started_ns, ended_ns, options,"
            " tool_version, recorder) VALUES (9, '', '', '', '', 1, 1, '', '', '')");
    cr_assert_eq(tracestore_delete_run(fixture.store, 9, &err), 0, "%s", err.message);
    cr_assert_eq(ask(db, "SELECT count(*) FROM functions"), 30);
    cr_assert_eq(tracestore_delete_run(fixture.store, 1, &err), 0, "%s", err.message);
    cr_assert_eq(ask(db,
                     "SELECT (SELECT count(*) FROM functions) + (SELECT count(*) FROM images)"
                     " + (SELECT count(*) FROM process_segments) + (SELECT count(*) FROM go_wait_reasons)"),
                 0);
    close_run(&fixture);
}

Test(go_keeping, retention_deletes_them)
{
    const struct trace_retention nothing = {.runs = 1, .age_ns = 1};
    struct trace_retained retained = {0};
    struct fixture fixture;
    struct error err = {0};
    int code;

    open_run(&fixture);
    while ((code = tracestore_retain(fixture.store, &nothing, 100000, &retained, &err)) > 0)
        ;
    cr_assert_eq(code, 0, "%s", err.message);
    cr_assert_eq(retained.runs, 1);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT count(*) FROM process_segments"), 0);
    close_run(&fixture);
}

Test(go_keeping, verifying_finds_damage)
{
    static const struct {
        const char *sql, *problem;
    } damages[] = {
        {"UPDATE process_segments SET checksum = checksum + 1 WHERE first_seq = 0", "checksum"},
        {"UPDATE process_segments SET event_count = event_count - 1 WHERE first_seq > 0", "decoded"},
        {"UPDATE process_segments SET last_ns = last_ns + 1 WHERE first_seq > 0", "time"},
        {"UPDATE process_segments SET names = x'00000000' WHERE first_seq > 0", "list"},
        {"UPDATE process_segments SET names = x'00' WHERE first_seq > 0", "list"},
        {"DELETE FROM functions WHERE function_id = 13", "function 13"},
        {"DELETE FROM process_segments WHERE first_seq = 0", "missing"},
    };

    for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
        struct tracestore_problem problem = {0};
        struct fixture fixture;

        open_run(&fixture);
        cr_assert_eq(verify(fixture.store, &problem), 0, "%s", problem.text);
        run_sql(tracestore_db(fixture.store), damages[i].sql);
        cr_assert_gt(verify(fixture.store, &problem), 0, "%s", damages[i].sql);
        cr_assert_not_null(strstr(problem.text, damages[i].problem), "%s", problem.text);
        cr_assert_eq(problem.run_id, 1);
        close_run(&fixture);
    }
}

/* What is whole of a damaged store is in the new one, which is in order; what is missing is told. */
Test(go_keeping, salvaging_takes_them_along)
{
    struct trace_salvaged salvaged;
    struct tracestore_problem problem = {0};
    struct tracestore *store = NULL;
    struct fixture fixture;
    struct error err = {0};
    char path[128];
    int64_t lost;

    open_run(&fixture);
    snprintf(path, sizeof(path), "%s/new.db", fixture.folder);
    cr_assert_eq(tracestore_salvage(fixture.path, path, &salvaged, &err), 0, "%s", err.message);
    cr_assert_eq(tracestore_open(path, TRACESTORE_READ, &store, &err), 0, "%s", err.message);
    cr_assert_eq(verify(store, &problem), 0, "%s", problem.text);
    expect_go_events(store, fixture.process_id, events, COUNT);
    cr_assert_eq(ask(tracestore_db(store), "SELECT count(*) FROM go_wait_reasons"), 3);
    tracestore_free(store);
    unlink(path);

    lost = ask(tracestore_db(fixture.store), "SELECT event_count FROM process_segments WHERE first_seq = 0");
    run_sql(tracestore_db(fixture.store),
            "UPDATE process_segments SET checksum = checksum + 1 WHERE first_seq = 0");
    run_sql(tracestore_db(fixture.store), "PRAGMA foreign_keys = OFF");
    run_sql(tracestore_db(fixture.store), "DELETE FROM go_programs");
    run_sql(tracestore_db(fixture.store), "DELETE FROM processes");
    run_sql(tracestore_db(fixture.store), "DELETE FROM functions WHERE function_id = 13");
    cr_assert_eq(tracestore_salvage(fixture.path, path, &salvaged, &err), 0, "%s", err.message);
    cr_assert_eq(salvaged.lost_segments, 1);
    cr_assert_eq((int64_t)salvaged.lost_events, lost);
    cr_assert_eq(tracestore_open(path, TRACESTORE_READ, &store, &err), 0, "%s", err.message);
    cr_assert_eq(verify(store, &problem), 0, "%s", problem.text);
    cr_assert_eq(ask(tracestore_db(store), "SELECT count(*) FROM process_segments"), 1);
    cr_assert_eq(ask(tracestore_db(store), "SELECT count(*) FROM go_programs"), 1);
    cr_assert_eq(ask(tracestore_db(store), "SELECT sum(count) FROM losses WHERE cause = 'damaged'"), lost);
    tracestore_free(store);
    close_run(&fixture);
}

/* A process that has goroutine events and synchronisation events has two sequences, also in a salvaged store
 * that has lost a part of one of them. */
Test(go_keeping, streams_of_a_process_are_apart)
{
    const struct process_event post = {.ns = 5000, .kind = SYNC_SEM_POST, .thread = 1, .object = 64};
    struct sync_process_description process = {.from_ns = 1};
    struct tracestore_problem problem = {0};
    struct process_writer *sync = NULL;
    struct process_event_iter *iter = NULL;
    struct process_event read = {0};
    struct trace_salvaged salvaged;
    struct tracestore *store = NULL;
    struct fixture fixture;
    struct error err = {0};
    char path[128];

    events = calloc(10, sizeof(*events));
    fixture_open(&fixture, NULL);
    for (size_t i = 0; i < 10; i++)
        events[i] = (struct process_event){.ns = 1000 + i, .kind = GO_EVENT_RUN, .goroutine = 3, .tid = 7};
    append(fixture_go_program(&fixture), 10);
    process.process_id = fixture.process_id;
    cr_assert_eq(trace_writer_sync_process(fixture.writer, &process, &sync, &err), 0);
    cr_assert_eq(process_writer_append(sync, &post), 0);
    cr_assert_eq(trace_writer_end(fixture.writer, 6000, 0, &err), 0, "%s", err.message);
    cr_assert_eq(verify(fixture.store, &problem), 0, "%s", problem.text);
    expect_go_events(fixture.store, fixture.process_id, events, 10);

    run_sql(tracestore_db(fixture.store),
            "UPDATE process_segments SET checksum = checksum + 1 WHERE stream = 1");
    snprintf(path, sizeof(path), "%s/new.db", fixture.folder);
    cr_assert_eq(tracestore_salvage(fixture.path, path, &salvaged, &err), 0, "%s", err.message);
    cr_assert_eq(salvaged.lost_events, 10);
    cr_assert_eq(tracestore_open(path, TRACESTORE_READ, &store, &err), 0, "%s", err.message);
    cr_assert_eq(verify(store, &problem), 0, "%s", problem.text);
    cr_assert_eq(process_event_iter_open(store, PROCESS_STREAM_SYNC, fixture.process_id, &iter, &err), 0);
    cr_assert_eq(process_event_iter_next(iter, &read, &err), 0, "%s", err.message);
    cr_assert(read.ns == post.ns && read.kind == post.kind && read.thread == 1 && read.object == 64);
    cr_assert_eq(process_event_iter_seq(iter), 0);
    cr_assert_eq(process_event_iter_next(iter, &read, &err), 1);
    process_event_iter_free(iter);
    tracestore_free(store);
    close_run(&fixture);
}
