/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Totals of many runs through one reader: of runs that have ended, are being recorded, or have damaged values, against what decoding the events gives. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "fixture.h"

enum { RUNS = 30 };

static void begin_run(struct fixture *fixture)
{
    const struct trace_run_description run = {.name = "run", .command = "command", .started_ns = 2000};
    const struct trace_process_description process = {.pid = 5, .rank = -1};

    cr_assert_eq(trace_writer_begin(fixture->store, &run, NULL, &fixture->writer, NULL), 0);
    cr_assert_eq(trace_writer_process(fixture->writer, &process, &fixture->process_id, NULL), 0);
}

/* Run `number`: no two have the same sums. Every third has lost events, every fifth an excluded function. */
static void write_run(struct fixture *fixture, uint64_t number)
{
    struct stream stream = {0};

    stream_generate(&stream, number % 3 ? STREAM_RANDOM : STREAM_LOSSES, number, 50 + 7 * number);
    for (uint64_t i = 0; i <= number % 4; i++)
        write_events(fixture_thread(fixture, "0.0", TRACE_RETURNS_PROBED), &stream, 0, stream.count);
    if (number % 5 == 0)
        trace_writer_blind(fixture->writer, 1, 1, 2, "budget", 1, NULL);
    stream_release(&stream);
}

static void end_run(struct fixture *fixture)
{
    cr_assert_eq(trace_writer_end(fixture->writer, 99000, 0, NULL), 0);
    trace_writer_free(fixture->writer);
    fixture->writer = NULL;
}

/* RUNS runs, of which the last one is being recorded and has all its events in the journal. */
static void write_runs(struct fixture *fixture)
{
    fixture_open(fixture, NULL);
    fixture_functions(fixture, 300);
    for (uint64_t number = 1; number <= RUNS; number++) {
        if (number > 1)
            begin_run(fixture);
        write_run(fixture, number);
        if (number < RUNS)
            end_run(fixture);
    }
    cr_assert_eq(trace_writer_flush(fixture->writer, 4000, NULL), 0);
}

static uint64_t ask_of(sqlite3 *db, const char *what, int64_t run)
{
    char sql[300];

    snprintf(sql, sizeof(sql), "SELECT %s AND run_id = %lld", what, (long long)run);
    return (uint64_t)ask(db, sql);
}

static void check_run(struct tracestore *store, int64_t run, const struct tracestore_totals *totals,
                      bool calls)
{
    sqlite3 *db = tracestore_db(store);

    cr_assert_eq(totals->events, ask_of(db, "count(*) FROM events WHERE true", run));
    cr_assert_eq(totals->threads, ask_of(db, "count(DISTINCT thread_id) FROM events WHERE true", run));
    cr_assert_eq(totals->lost, ask_of(db, "coalesce(sum(count), 0) FROM losses WHERE true", run));
    cr_assert_eq(totals->stored_bytes,
                 ask_of(db,
                        "coalesce(sum(length(data)), 0) FROM (SELECT run_id, data FROM segments UNION ALL"
                        " SELECT run_id, data FROM journal) WHERE true",
                        run));
    cr_assert_eq(totals->muted_functions, run % 5 == 0);
    cr_assert_eq(totals->loss_unknown, run == RUNS);
    cr_assert_eq(totals->complete, run % 5 && run % 3 && run != RUNS);
    cr_assert_eq(totals->calls, calls ? ask_of(db, "count(*) FROM events WHERE kind = 'call'", run) : 0);
    cr_assert_eq(totals->returns, calls ? ask_of(db, "count(*) FROM events WHERE kind = 'return'", run) : 0);
    cr_assert_eq(totals->functions,
                 calls ? ask_of(db, "count(DISTINCT function_id) FROM events WHERE kind = 'call'", run) : 0);
}

static void check_runs(struct tracestore *store, unsigned parts)
{
    struct tracestore_totals_reader *reader;

    cr_assert_eq(tracestore_totals_open(store, parts, &reader, NULL), 0);
    for (int64_t run = 1; run <= RUNS; run++) {
        struct tracestore_totals totals = {0}, alone = {0};

        cr_assert_eq(tracestore_totals_read(reader, run, &totals, NULL), 0);
        check_run(store, run, &totals, parts & TRACESTORE_CALLS);
        cr_assert_eq(tracestore_run_totals(store, run, &alone, NULL), 0);
        cr_assert_eq(totals.catalog_bytes, parts & TRACESTORE_CATALOG ? alone.catalog_bytes : 0);
        cr_assert_eq(totals.events, alone.events);
    }
    tracestore_totals_close(reader);
}

Test(totals, of_many_runs_are_what_their_events_add_up_to)
{
    struct fixture fixture;

    write_runs(&fixture);
    check_runs(fixture.store, 0);
    check_runs(fixture.store, TRACESTORE_CALLS);
    check_runs(fixture.store, TRACESTORE_CATALOG | TRACESTORE_CALLS);
    fixture_close(&fixture);
}

Test(totals, of_merged_runs_are_those_of_the_runs_they_were_copied_from)
{
    struct fixture fixture, to;
    struct tracestore_totals_reader *reader;

    write_runs(&fixture);
    end_run(&fixture);
    fixture_open(&to, NULL);
    end_run(&to);
    run_sql(tracestore_db(fixture.store),
            "UPDATE runs SET started_ns = run_id"); /* no two are the same run */
    cr_assert_eq(tracestore_merge(to.store, fixture.path, &(struct trace_merged){0}, NULL), 0);
    cr_assert_eq(tracestore_totals_open(to.store, TRACESTORE_CALLS, &reader, NULL), 0);
    for (int64_t run = 1; run <= RUNS; run++) {
        struct tracestore_totals totals, original;

        cr_assert_eq(tracestore_totals_read(reader, 1 + run, &totals, NULL), 0);
        cr_assert_eq(tracestore_run_totals(fixture.store, run, &original, NULL), 0);
        cr_assert_eq(totals.events, original.events);
        cr_assert_eq(totals.calls, original.calls);
        cr_assert_eq(totals.lost, original.lost);
        cr_assert_eq(totals.functions, original.functions);
        cr_assert_eq(totals.complete, original.complete);
    }
    tracestore_totals_close(reader);
    fixture_close(&to);
    fixture_close(&fixture);
}

Test(totals, a_run_that_does_not_exist_has_none)
{
    struct fixture fixture;
    struct tracestore_totals_reader *reader;
    struct tracestore_totals totals;

    write_runs(&fixture);
    cr_assert_eq(tracestore_totals_open(fixture.store, TRACESTORE_CALLS, &reader, NULL), 0);
    memset(&totals, 1, sizeof(totals));
    cr_assert_eq(tracestore_totals_read(reader, RUNS + 1, &totals, NULL), 0);
    cr_assert_eq(totals.events, 0);
    cr_assert_eq(totals.threads, 0);
    tracestore_totals_close(reader);
    fixture_close(&fixture);
}

static int count_statement(unsigned event, void *context, void *statement, void *text)
{
    (void)event, (void)statement;
    *(unsigned *)context += strncmp(text, "--", 2) != 0;
    return 0;
}

/* Statements that a reader runs for `runs` runs, without those that open and close it. */
static unsigned statements_of(struct tracestore *store, unsigned parts, int64_t runs)
{
    struct tracestore_totals_reader *reader;
    struct tracestore_totals totals;
    unsigned statements = 0;

    cr_assert_eq(tracestore_totals_open(store, parts, &reader, NULL), 0);
    sqlite3_trace_v2(tracestore_db(store), SQLITE_TRACE_STMT, count_statement, &statements);
    for (int64_t run = 1; run <= runs; run++)
        cr_assert_eq(tracestore_totals_read(reader, run, &totals, NULL), 0);
    sqlite3_trace_v2(tracestore_db(store), 0, NULL, NULL);
    tracestore_totals_close(reader);
    return statements;
}

Test(totals, take_three_statements_a_run_and_one_more_for_calls)
{
    struct fixture fixture;

    write_runs(&fixture);
    cr_assert_eq(statements_of(fixture.store, 0, RUNS - 1), 3 * (RUNS - 1));
    cr_assert_eq(statements_of(fixture.store, TRACESTORE_CALLS, RUNS - 1), 4 * (RUNS - 1));
    fixture_close(&fixture);
}

/* A snapshot: what is committed meanwhile is not in it. */
Test(totals, are_those_of_one_moment)
{
    struct fixture fixture;
    struct tracestore *other;
    struct tracestore_totals_reader *reader;
    struct tracestore_totals before, after;

    write_runs(&fixture);
    cr_assert_eq(tracestore_open(fixture.path, TRACESTORE_READ, &other, NULL), 0);
    cr_assert_eq(tracestore_totals_open(other, TRACESTORE_CALLS, &reader, NULL), 0);
    cr_assert_eq(tracestore_totals_read(reader, 1, &before, NULL), 0);
    end_run(&fixture);
    cr_assert_eq(tracestore_totals_read(reader, RUNS, &before, NULL), 0);
    tracestore_totals_close(reader);
    cr_assert_eq(tracestore_run_totals(other, RUNS, &after, NULL), 0);
    cr_assert(before.loss_unknown && !after.loss_unknown);
    cr_assert_eq(before.events, after.events);
    cr_assert_eq(before.calls, after.calls);
    cr_assert_eq(before.threads, after.threads);
    tracestore_free(other);
    fixture_close(&fixture);
}

/* One run with a value of the wrong type fails; the others can still be read. */
Test(totals, refuse_values_that_are_no_numbers)
{
    static const char *const damage[] = {
        "UPDATE segments SET event_count = 'many' WHERE run_id = 2",
        "UPDATE segments SET event_count = 1e300 WHERE run_id = 2",
        "UPDATE segments SET event_count = 9223372036854775807 WHERE run_id = 2",
        "UPDATE losses SET count = 0.5 WHERE run_id = 3",
    };
    struct fixture fixture;
    struct tracestore_totals_reader *reader;
    struct tracestore_totals totals;

    for (int i = 0; i < 4; i++) {
        struct error err = {0};

        write_runs(&fixture);
        run_sql(tracestore_db(fixture.store), damage[i]);
        cr_assert_eq(tracestore_totals_open(fixture.store, 0, &reader, NULL), 0);
        cr_assert_lt(tracestore_totals_read(reader, i < 3 ? 2 : 3, &totals, &err), 0, "%s", damage[i]);
        cr_assert_neq(*err.message, 0);
        cr_assert_eq(tracestore_totals_read(reader, 4, &totals, &err), 0, "%s", err.message);
        tracestore_totals_close(reader);
        fixture_close(&fixture);
    }
}
