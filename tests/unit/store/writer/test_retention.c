/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "tests/unit/store/fixture.h"

#define HOUR_NS 3600000000000u

/* Writes a run of some size that begins and ends at `ns`, into the fixture's store; not ended when `open`. */
static void add_run(struct fixture *fixture, uint64_t ns, size_t events, bool open)
{
    const struct trace_run_description run = {.name = "r", .command = "./r", .started_ns = ns};
    const struct trace_process_description process = {.pid = 7, .rank = -1, .exe = "r", .argv = "r"};
    struct trace_thread_description description = {.label = "0.0", .returns = TRACE_RETURNS_PROBED};
    const struct trace_writer_options small = {.segment_bytes = 2000};
    struct stream stream = {0};
    struct thread_writer *thread;
    struct trace_writer *writer;

    cr_assert_eq(trace_writer_begin(fixture->store, &run, &small, &writer, NULL), 0);
    cr_assert_eq(trace_writer_process(writer, &process, &description.process_id, NULL), 0);
    cr_assert_eq(trace_writer_thread(writer, &description, &thread, NULL), 0);
    stream_generate(&stream, STREAM_RANDOM, ns, events);
    write_events(thread, &stream, 0, stream.count);
    cr_assert_eq(open ? trace_writer_flush(writer, ns, NULL) : trace_writer_end(writer, ns, 0, NULL), 0);
    trace_writer_free(writer);
    stream_release(&stream);
}

/* A store with the fixture's own run, empty and being recorded by this process, behind `count` ended ones,
 * one an hour. */
static void make_runs(struct fixture *fixture, int count, size_t events)
{
    fixture_open(fixture, NULL);
    fixture_functions(fixture, 300);
    cr_assert_eq(trace_writer_flush(fixture->writer, 1, NULL), 0);
    for (int i = 1; i <= count; i++)
        add_run(fixture, (uint64_t)i * HOUR_NS, events, false);
}

/* Takes steps to the end; returns their number. */
static int retain(struct fixture *fixture, struct trace_retention keep, uint64_t now_ns,
                  struct trace_retained *retained)
{
    struct error err = {0};
    int code, steps = 0;

    while ((code = tracestore_retain(fixture->store, &keep, now_ns, retained, &err)) > 0)
        cr_assert_lt(++steps, 1000);
    cr_assert_eq(code, 0, "%s", err.message);
    return steps;
}

static void expect_runs(struct fixture *fixture, const char *runs)
{
    sqlite3_stmt *row;

    cr_assert_eq(sqlite3_prepare_v2(tracestore_db(fixture->store),
                                    "SELECT group_concat(run_id) FROM (SELECT run_id FROM runs ORDER BY 1)",
                                    -1, &row, NULL),
                 SQLITE_OK);
    cr_assert_eq(sqlite3_step(row), SQLITE_ROW);
    cr_assert_str_eq((const char *)sqlite3_column_text(row, 0), runs);
    sqlite3_finalize(row);
    cr_assert_eq(tracestore_verify(fixture->store, NULL, NULL, NULL, NULL), 0);
}

static int64_t size_of(const struct fixture *fixture, const char *suffix)
{
    struct stat status;
    char path[128];

    snprintf(path, sizeof(path), "%s%s", fixture->path, suffix);
    return stat(path, &status) ? 0 : status.st_size;
}

Test(retention, the_newest_runs_are_kept)
{
    struct fixture fixture;
    struct trace_retained retained = {0};

    make_runs(&fixture, 5, 100); /* runs 2 to 6; 1 is being recorded */
    retain(&fixture, (struct trace_retention){.runs = 9}, 0, &retained);
    expect_runs(&fixture, "1,2,3,4,5,6");
    retain(&fixture, (struct trace_retention){.runs = 3}, 0, &retained);
    expect_runs(&fixture, "1,5,6");
    cr_assert_eq(retained.runs, 3);
    fixture_close(&fixture);
}

Test(retention, the_age_counts_from_the_end)
{
    struct fixture fixture;
    struct trace_retained retained = {0};

    make_runs(&fixture, 5, 100);
    retain(&fixture, (struct trace_retention){.age_ns = 2 * HOUR_NS}, 5 * HOUR_NS, &retained);
    expect_runs(&fixture, "1,4,5,6"); /* run 4 ended two hours ago */
    retain(&fixture, (struct trace_retention){.age_ns = HOUR_NS}, 100 * HOUR_NS, &retained);
    expect_runs(&fixture, "1"); /* it began long ago, but it is being recorded */
    fixture_close(&fixture);
}

/* By what its pages hold, and the file gets shorter by what has gone. */
Test(retention, the_size_is_kept_and_the_space_given_back)
{
    struct fixture fixture;
    struct trace_retained retained = {.space_due = true};
    int64_t full, half;

    make_runs(&fixture, 8, 90000);
    retain(&fixture, (struct trace_retention){0}, 0, &retained);
    full = size_of(&fixture, "");
    cr_assert_eq(size_of(&fixture, "-wal"), 0);
    retain(&fixture, (struct trace_retention){.bytes = (uint64_t)full / 2}, 0, &retained);
    half = size_of(&fixture, "");
    cr_assert_eq(size_of(&fixture, "-wal"), 0);
    cr_assert_leq(half, full / 2);
    cr_assert_gt(half, full / 4, "more has gone than was to go");
    cr_assert_eq(ask(tracestore_db(fixture.store), "PRAGMA freelist_count"), 0);
    expect_runs(&fixture, "1,7,8,9");
    /* What cannot be met is no reason to go on for ever. */
    retain(&fixture, (struct trace_retention){.bytes = 1, .spare_run = 8}, 0, &retained);
    expect_runs(&fixture, "1,8");
    retain(&fixture, (struct trace_retention){.bytes = 1}, 0, &retained);
    expect_runs(&fixture, "1");
    fixture_close(&fixture);
}

/* A run that ends leaves the pages of its journal: they go, when the file is too long with them. */
Test(retention, pages_that_others_freed_are_given_back)
{
    struct fixture fixture;
    struct trace_retained retained = {.space_due = true};
    int64_t size, longer;
    sqlite3 *db;

    make_runs(&fixture, 2, 1000);
    retain(&fixture, (struct trace_retention){0}, 0, &retained);
    size = size_of(&fixture, "");
    db = tracestore_db(fixture.store);
    run_sql(db, "CREATE TABLE freed AS SELECT randomblob(100000) AS bytes");
    run_sql(db, "DROP TABLE freed");
    longer = ask(db, "PRAGMA page_count") * ask(db, "PRAGMA page_size");
    cr_assert_gt(longer, size);
    retain(&fixture, (struct trace_retention){.bytes = (uint64_t)longer}, 0, &retained);
    cr_assert_eq(ask(db, "PRAGMA page_count") * ask(db, "PRAGMA page_size"), longer, "for the next to use");
    retain(&fixture, (struct trace_retention){.bytes = (uint64_t)size}, 0, &retained);
    cr_assert_eq(size_of(&fixture, ""), size);
    expect_runs(&fixture, "1,2,3");
    fixture_close(&fixture);
}

/* A step takes a part of a big run; whoever stops in the middle leaves a run that is whole up to its end. */
Test(retention, a_run_deleted_in_part_says_so)
{
    struct fixture fixture;
    struct trace_retained retained = {0}, later = {0};
    struct tracestore_run run;
    int64_t before;

    make_runs(&fixture, 0, 0);
    add_run(&fixture, HOUR_NS, 400000, false);
    add_run(&fixture, HOUR_NS, 100, false);
    before = ask(tracestore_db(fixture.store), "SELECT count(*) FROM segments WHERE run_id = 2");
    cr_assert_gt(before, 100);
    cr_assert_eq(tracestore_retain(fixture.store, &(struct trace_retention){.runs = 2}, 9, &retained, NULL),
                 1);
    cr_assert_eq(retained.runs, 0);
    cr_assert_lt(ask(tracestore_db(fixture.store), "SELECT count(*) FROM segments WHERE run_id = 2"), before);
    expect_runs(&fixture, "1,2,3");
    cr_assert_eq(tracestore_find_run(fixture.store, "2", &run, NULL), 0);
    cr_assert(run.unfinished);
    tracestore_run_release(&run);
    retain(&fixture, (struct trace_retention){0}, 9, &later); /* begun is to be ended */
    expect_runs(&fixture, "1,3");
    cr_assert_eq(later.runs, 1);
    fixture_close(&fixture);
}

/* The recorder of a run that was not ended is gone: its run counts as ended at its last flush. */
Test(retention, a_dead_recorders_run_can_go)
{
    struct fixture fixture;
    struct trace_retained retained = {0};

    make_runs(&fixture, 1, 100);
    add_run(&fixture, 7 * HOUR_NS, 100, true);
    retain(&fixture, (struct trace_retention){.runs = 1}, 0, &retained);
    expect_runs(&fixture, "1,3"); /* both are recorded by this very process */
    run_sql(tracestore_db(fixture.store), "UPDATE runs SET recorder = 'gone 1 1' WHERE run_id = 3");
    retain(&fixture, (struct trace_retention){.age_ns = HOUR_NS}, 7 * HOUR_NS, &retained);
    expect_runs(&fixture, "1,3");
    retain(&fixture, (struct trace_retention){.age_ns = HOUR_NS}, 9 * HOUR_NS, &retained);
    expect_runs(&fixture, "1");
    fixture_close(&fixture);
}

Test(retention, room_is_made_a_run_at_a_time)
{
    struct fixture fixture;
    struct trace_retained retained = {0};
    int64_t before;

    make_runs(&fixture, 2, 60000);
    before = size_of(&fixture, "") + size_of(&fixture, "-wal");
    cr_assert_eq(tracestore_make_room(fixture.store, 9, &retained, NULL), 1);
    expect_runs(&fixture, "1,3");
    cr_assert_lt(size_of(&fixture, "") + size_of(&fixture, "-wal"), before);
    cr_assert_eq(tracestore_make_room(fixture.store, 9, &retained, NULL), 1);
    cr_assert_eq(tracestore_make_room(fixture.store, 9, &retained, NULL), 0);
    expect_runs(&fixture, "1");
    cr_assert_eq(retained.runs, 2);
    fixture_close(&fixture);
}

/* Nothing can be committed: the run ends with what it has, and says that and why it has not more. */
Test(retention, a_run_can_be_cut)
{
    struct fixture fixture;
    struct tracestore_run run;
    struct stream stream = {0};
    struct thread_writer *thread;
    char sql[80];

    fixture_open(&fixture, NULL);
    fixture_functions(&fixture, 300);
    thread = fixture_thread(&fixture, "0.0", TRACE_RETURNS_PROBED);
    stream_generate(&stream, STREAM_RANDOM, 12, 300000);
    write_events(thread, &stream, 0, 1000);
    cr_assert_eq(trace_writer_flush(fixture.writer, 2000, NULL), 0);
    write_events(thread, &stream, 1000, stream.count);
    snprintf(sql, sizeof(sql), "PRAGMA max_page_count = %lld",
             (long long)ask(tracestore_db(fixture.store), "PRAGMA page_count"));
    run_sql(tracestore_db(fixture.store), sql);
    cr_assert_eq(trace_writer_end(fixture.writer, 3000, 0, NULL), -ENOSPC);
    cr_assert_eq(trace_writer_cut(fixture.writer, 3000, "disk full", NULL), 0);
    expect_stream(fixture.store, 1, &stream, 1000);
    cr_assert_eq(tracestore_find_run(fixture.store, "latest", &run, NULL), 0);
    cr_assert_eq(run.ended_ns, 2000);
    cr_assert(run.unfinished);
    tracestore_run_release(&run);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT ns FROM losses WHERE cause = 'disk full'"), 3000);
    cr_assert_eq(tracestore_verify(fixture.store, NULL, NULL, NULL, NULL), 0);
    fixture_close(&fixture);
    stream_release(&stream);
}
