/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Values that somebody has put into a store so that a reader fails: each is told, and nothing goes on for
 * ever. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "store/db/store.h"
#include "store/segment/event_iter.h"
#include "tests/unit/store/go_fixture.h"

/* Two threads with several segments each, and a Go program; the recorder is gone. */
static void make_run(struct fixture *fixture)
{
    static const struct trace_writer_options small_segments = {.segment_bytes = 400};
    static struct process_event events[3000];
    struct generator generator = {5};
    struct stream stream = {0};
    struct process_writer *go;

    fixture_open(fixture, &small_segments);
    fixture_functions(fixture, 30);
    go = fixture_go_program(fixture);
    go_events_of_program(&generator, 3, events, 3000);
    stream_generate(&stream, STREAM_RANDOM, 1, 4000);
    for (int i = 0; i < 2; i++)
        write_events(fixture_thread(fixture, i ? "0.1" : "0.0", TRACE_RETURNS_PROBED), &stream, 0,
                     stream.count);
    for (size_t i = 0; i < 3000; i++)
        cr_assert_eq(process_writer_append(go, &events[i]), 0);
    cr_assert_eq(trace_writer_flush(fixture->writer, 900000, NULL), 0);
    trace_writer_free(fixture->writer);
    fixture->writer = NULL;
    stream_release(&stream);
    run_sql(tracestore_db(fixture->store), "UPDATE runs SET recorder = 'x 1 1'; PRAGMA foreign_keys = OFF");
}

/* Reads on behind every failure, as an export does; gives the number of failures. It ends: that is the test.
 */
static int failures_of_calls(struct fixture *fixture, int64_t thread_id)
{
    struct event_iter *iter = NULL;
    struct event event;
    int failures = 0, code = event_iter_open(fixture->store, thread_id, 0, &iter, NULL);

    cr_assert_eq(code, 0);
    while ((code = event_iter_next(iter, &event, NULL)) != 1)
        cr_assert_leq(failures += code < 0, 100);
    event_iter_free(iter);
    return failures;
}

static int failures_of_goroutines(struct fixture *fixture)
{
    struct process_event_iter *iter = NULL;
    struct process_event event;
    int failures = 0,
        code = process_event_iter_open(fixture->store, PROCESS_STREAM_GO, fixture->process_id, &iter, NULL);

    cr_assert_eq(code, 0);
    while ((code = process_event_iter_next(iter, &event, NULL)) != 1)
        cr_assert_leq(failures += code < 0, 100);
    process_event_iter_free(iter);
    return failures;
}

/* The schema lets NULL in for a moment, as a damaged page would. */
#define WITHOUT_NOT_NULL(table, sql) \
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL', '') WHERE name = " \
    "'" table "'; PRAGMA writable_schema = RESET; " sql

static const char *const segments[] = {
    "UPDATE segments SET first_seq = 0.5 WHERE segment_id = 2",
    "UPDATE segments SET event_count = event_count + 0.5 WHERE segment_id = 2",
    "UPDATE segments SET first_seq = 9223372036854775807 WHERE segment_id = 2",
    "UPDATE segments SET event_count = 9223372036854775807 WHERE segment_id = 1",
    "UPDATE segments SET event_count = -5 WHERE segment_id = 1",
    "UPDATE segments SET first_seq = -first_seq WHERE segment_id = 3",
    "UPDATE segments SET first_seq = x'00' WHERE segment_id = 3",
    "UPDATE segments SET first_seq = 'x' WHERE segment_id = 3",
    "UPDATE segments SET last_ns = 'never', checksum = -1 WHERE segment_id = 2",
};

Test(hostile, walks_over_calls_end)
{
    for (size_t i = 0; i < sizeof(segments) / sizeof(*segments); i++) {
        struct fixture fixture;

        make_run(&fixture);
        cr_assert_eq(failures_of_calls(&fixture, 1), 0);
        run_sql(tracestore_db(fixture.store), segments[i]);
        cr_assert_geq(failures_of_calls(&fixture, 1) + failures_of_calls(&fixture, 2), 1, "%s", segments[i]);
        cr_assert_geq(tracestore_verify(fixture.store, NULL, NULL, NULL, NULL), 1, "%s", segments[i]);
        fixture_close(&fixture);
    }
}

Test(hostile, walks_over_goroutine_events_end)
{
    static const char *const changes[] = {"first_seq = first_seq + 0.5", "event_count = 9223372036854775807",
                                          "event_count = 0.5", "first_seq = 'x'", "checksum = 0.5"};

    for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
        struct fixture fixture;
        char sql[128];

        make_run(&fixture);
        cr_assert_eq(failures_of_goroutines(&fixture), 0);
        snprintf(sql, sizeof(sql), "UPDATE process_segments SET %s", changes[i]);
        run_sql(tracestore_db(fixture.store), sql);
        cr_assert_geq(failures_of_goroutines(&fixture), 1, "%s", sql);
        cr_assert_geq(tracestore_verify(fixture.store, NULL, NULL, NULL, NULL), 1, "%s", sql);
        fixture_close(&fixture);
    }
}

static bool tells(int result, const struct error *err)
{
    return result < 0 && strstr(err->message, "tracectl verify");
}

/* Whatever is asked of runs, threads and functions, a wrong value is an error and not a wrong answer or a
 * crash. */
Test(hostile, values_of_wrong_types_are_told)
{
    static const char *const changes[] = {
        WITHOUT_NOT_NULL("runs", "UPDATE runs SET recorder = NULL"),
        WITHOUT_NOT_NULL("runs", "UPDATE runs SET name = NULL"),
        "UPDATE runs SET started_ns = 'x'",
        "UPDATE runs SET exit_status = x'00'",
        WITHOUT_NOT_NULL("threads", "UPDATE threads SET returns = NULL"),
        "UPDATE threads SET tid = 0.5",
        "UPDATE functions SET line = 'x'",
        WITHOUT_NOT_NULL("functions", "UPDATE functions SET name = NULL"),
    };

    for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
        struct trace_recovered recovered;
        struct tracestore_run run = {0};
        struct tracestore_thread *threads = NULL;
        struct tracestore_function *functions = NULL;
        const struct trace_retention keep = {.runs = 1};
        struct trace_retained retained = {0};
        size_t count = 0, function_count = 0;
        struct error err = {0};
        struct fixture fixture;
        sqlite3 *db;
        int told = 0;

        make_run(&fixture);
        cr_assert_eq(sqlite3_open(fixture.path, &db), SQLITE_OK);
        run_sql(db, changes[i]);
        sqlite3_close(db);
        cr_assert_geq(tracestore_verify(fixture.store, NULL, NULL, NULL, NULL), 1, "%s", changes[i]);
        told += tells(tracestore_find_run(fixture.store, "1", &run, &err), &err);
        told += tells(tracestore_threads(fixture.store, 1, &threads, &count, &err), &err);
        told += tells(tracestore_functions(fixture.store, 1, &functions, &function_count, &err), &err);
        told += tells(tracestore_recover(fixture.store, &recovered, &err), &err);
        told += tells(tracestore_retain(fixture.store, &keep, 2000, &retained, &err), &err);
        told += tells(tracestore_delete_run(fixture.store, 1, &err), &err);
        cr_assert_geq(told, 1, "%s: %s", changes[i], err.message);
        tracestore_run_release(&run);
        tracestore_threads_free(threads, count);
        tracestore_functions_free(functions, function_count);
        fixture_close(&fixture);
    }
}
