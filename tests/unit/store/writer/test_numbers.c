/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rows of the catalog that wait for a flush: two recorders that register the same, locked stores, kills. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tests/unit/store/fixture.h"

#define FUNCTIONS 40

/* One of two recorders of the same program on the same store. */
struct recorder {
    struct tracestore *store;
    struct trace_writer *writer;
    struct thread_writer *thread;
    int64_t image_id;
    uint32_t functions[FUNCTIONS], sites[FUNCTIONS]; /* as this writer numbers them */
    struct generator generator;
    struct {
        int function, site;
    } said[4000]; /* function -1: a return */
    size_t count, depth;
};

static void begin(struct recorder *recorder, const char *path, uint64_t seed)
{
    static const struct trace_image_description image = {"/bin/prog", "ab", "main"};
    const struct trace_run_description run = {.name = "one of two", .command = ""};
    const struct trace_process_description process = {.pid = 9, .rank = -1};
    struct trace_thread_description thread = {.label = "0.0", .call_sites = true};

    *recorder = (struct recorder){.generator = {seed}};
    cr_assert_eq(tracestore_open(path, TRACESTORE_CREATE, &recorder->store, NULL), 0);
    cr_assert_eq(trace_writer_begin(recorder->store, &run,
                                    &(struct trace_writer_options){.segment_bytes = 400}, &recorder->writer,
                                    NULL),
                 0);
    cr_assert_eq(trace_writer_image(recorder->writer, &image, &recorder->image_id, NULL), 0);
    cr_assert_eq(trace_writer_process(recorder->writer, &process, &thread.process_id, NULL), 0);
    cr_assert_eq(trace_writer_thread(recorder->writer, &thread, &recorder->thread, NULL), 0);
}

/* Registers a function or site when it first comes, as a recorder does. */
static uint32_t number_of_function(struct recorder *recorder, int at)
{
    char name[16];
    const struct trace_function_description function = {.name = name, .address = 0x1000 + (unsigned)at * 16};

    snprintf(name, sizeof(name), "f%d", at);
    if (!recorder->functions[at])
        cr_assert_eq(trace_writer_function(recorder->writer, recorder->image_id, &function,
                                           &recorder->functions[at], NULL),
                     0);
    return recorder->functions[at];
}

static uint32_t number_of_site(struct recorder *recorder, int at)
{
    const struct trace_call_site_description site = {.image_id = recorder->image_id,
                                                     .address = 0x1000 + (unsigned)at * 16 + 5};

    if (!recorder->sites[at])
        cr_assert_eq(trace_writer_call_site(recorder->writer, &site, &recorder->sites[at], NULL), 0);
    return recorder->sites[at];
}

static void say(struct recorder *recorder, size_t events)
{
    for (size_t i = 0; i < events; i++) {
        int function = (int)generator_below(&recorder->generator, FUNCTIONS);
        int site = (int)generator_below(&recorder->generator, FUNCTIONS);

        if (recorder->depth && generator_below(&recorder->generator, 100) < 48) {
            cr_assert_eq(thread_writer_return(recorder->thread), 0);
            recorder->said[recorder->count++].function = -1;
            recorder->depth--;
            continue;
        }
        cr_assert_eq(thread_writer_call_from(recorder->thread, number_of_function(recorder, function),
                                             number_of_site(recorder, site)),
                     0);
        recorder->said[recorder->count].function = function;
        recorder->said[recorder->count++].site = site;
        recorder->depth++;
    }
}

/* What the store has is what was said, by name and by address. */
static void expect_said(const struct recorder *recorder, struct tracestore *store)
{
    sqlite3_stmt *row;
    size_t i = 0;

    cr_assert_eq(sqlite3_prepare_v2(tracestore_db(store),
                                    "SELECT e.kind, f.name, s.address FROM events e"
                                    " LEFT JOIN functions f USING (function_id)"
                                    " LEFT JOIN call_sites s ON s.site_id = e.call_site"
                                    " WHERE e.thread_id = ?1 ORDER BY e.seq",
                                    -1, &row, NULL),
                 SQLITE_OK, "%s", sqlite3_errmsg(tracestore_db(store)));
    sqlite3_bind_int64(row, 1, thread_writer_id(recorder->thread));
    for (; sqlite3_step(row) == SQLITE_ROW; i++) {
        char name[16];

        cr_assert_lt(i, recorder->count);
        if (recorder->said[i].function < 0) {
            cr_assert_str_eq((const char *)sqlite3_column_text(row, 0), "return");
            continue;
        }
        snprintf(name, sizeof(name), "f%d", recorder->said[i].function);
        cr_assert_str_eq((const char *)sqlite3_column_text(row, 1), name, "event %zu", i);
        cr_assert_eq(sqlite3_column_int64(row, 2), 0x1000 + recorder->said[i].site * 16 + 5, "event %zu", i);
    }
    cr_assert_eq(i, recorder->count);
    sqlite3_finalize(row);
}

static void flush(struct recorder *recorder, uint64_t ns)
{
    struct error err = {0};

    cr_assert_eq(trace_writer_flush(recorder->writer, ns, &err), 0, "%s", err.message);
}

static void release(struct recorder *recorder)
{
    trace_writer_free(recorder->writer);
    tracestore_free(recorder->store);
}

/* Both register the same functions and sites, in different orders, between each other's flushes. */
Test(numbers, two_recorders_of_one_program)
{
    struct fixture fixture;
    struct recorder *recorders = calloc(2, sizeof(*recorders));

    fixture_open(&fixture, NULL);
    cr_assert_eq(trace_writer_end(fixture.writer, 5, 0, NULL), 0);
    for (int i = 0; i < 2; i++)
        begin(&recorders[i], fixture.path, 100 + (uint64_t)i);
    for (int round = 0; round < 30; round++) {
        for (int i = 0; i < 2; i++)
            say(&recorders[i], round < 10 ? 9 : 120);
        for (int i = 0; i < 2; i++) {
            flush(&recorders[(round + i) % 2], 1000 + (uint64_t)round);
            expect_said(&recorders[(round + i) % 2], fixture.store);
        }
    }
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT count(*) FROM functions"), FUNCTIONS);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT count(*) FROM call_sites"), FUNCTIONS);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT count(*) FROM images"), 1);
    cr_assert_neq(memcmp(recorders[0].functions, recorders[1].functions, sizeof(recorders[0].functions)), 0,
                  "the test is about numbers that differ");
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(trace_writer_end(recorders[i].writer, 9000, 0, NULL), 0);
        expect_said(&recorders[i], fixture.store);
    }
    cr_assert_eq(ask(tracestore_db(fixture.store),
                     "SELECT count(*) FROM segment_functions WHERE function_id NOT IN"
                     " (SELECT function_id FROM functions)"),
                 0);
    cr_assert_eq(tracestore_verify(fixture.store, NULL, NULL, NULL, NULL), 0);
    release(&recorders[0]);
    release(&recorders[1]);
    fixture_close(&fixture);
    free(recorders);
}

/* While another process keeps the store locked, everything can be registered; only the flush says -EBUSY. */
Test(numbers, a_locked_store_delays_the_catalog)
{
    struct fixture fixture;
    struct recorder *recorder = calloc(1, sizeof(*recorder));
    struct error err = {0};
    sqlite3 *other;

    fixture_open(&fixture, NULL);
    cr_assert_eq(trace_writer_end(fixture.writer, 5, 0, NULL), 0);
    cr_assert_eq(sqlite3_open(fixture.path, &other), SQLITE_OK);
    begin(recorder, fixture.path, 7);
    sqlite3_busy_timeout(tracestore_db(recorder->store), 0);
    run_sql(other, "BEGIN IMMEDIATE");
    say(recorder, 500);
    cr_assert_eq(trace_writer_tag(recorder->writer, "k", "v", NULL), 0);
    cr_assert_eq(trace_writer_flush(recorder->writer, 1000, &err), -EBUSY);
    say(recorder, 500);
    run_sql(other, "ROLLBACK");
    cr_assert_eq(ask(other, "SELECT count(*) FROM threads WHERE label = '0.0'"), 0);
    flush(recorder, 2000);
    expect_said(recorder, fixture.store);
    cr_assert_eq(ask(other, "SELECT count(*) FROM tags"), 1);
    sqlite3_close(other);
    release(recorder);
    fixture_close(&fixture);
    free(recorder);
}

/* A flush that failed in the middle has given out ids that another recorder gets in the meantime. */
Test(numbers, ids_of_a_flush_that_failed_are_given_anew)
{
    struct fixture fixture;
    struct recorder *recorders = calloc(2, sizeof(*recorders));
    sqlite3 *db;

    fixture_open(&fixture, NULL);
    cr_assert_eq(trace_writer_end(fixture.writer, 5, 0, NULL), 0);
    begin(&recorders[0], fixture.path, 1);
    begin(&recorders[1], fixture.path, 2);
    say(&recorders[0], 600);
    db = tracestore_db(recorders[0].store);
    run_sql(db,
            "CREATE TEMP TRIGGER no_segments BEFORE INSERT ON main.segments BEGIN"
            " SELECT raise(ABORT, 'the test says no'); END");
    cr_assert_lt(trace_writer_flush(recorders[0].writer, 1000, NULL), 0);
    say(&recorders[1], 600);
    flush(&recorders[1], 2000);
    run_sql(db, "DROP TRIGGER no_segments");
    say(&recorders[0], 600);
    flush(&recorders[0], 3000);
    for (int i = 0; i < 2; i++) {
        expect_said(&recorders[i], fixture.store);
        release(&recorders[i]);
    }
    cr_assert_eq(tracestore_verify(fixture.store, NULL, NULL, NULL, NULL), 0);
    fixture_close(&fixture);
    free(recorders);
}

Test(numbers, losses_by_kind)
{
    struct fixture fixture;
    struct thread_writer *thread;

    fixture_open(&fixture, NULL);
    thread = fixture_thread(&fixture, "0.0", TRACE_RETURNS_PROBED);
    cr_assert_eq(thread_writer_lost_by_kind(thread, 10, 3, 4, "both", NULL), 0);
    cr_assert_eq(thread_writer_lost_by_kind(thread, 20, 0, 4, "returns", NULL), 0);
    cr_assert_eq(thread_writer_lost(thread, 30, 9, "sum", NULL), 0);
    cr_assert_eq(trace_writer_loss(fixture.writer, 40, 0, "nothing", NULL), 0);
    cr_assert_eq(trace_writer_flush(fixture.writer, 50, NULL), 0);
    cr_assert_eq(ask(tracestore_db(fixture.store),
                     "SELECT count = 7 AND calls = 3 AND returns = 4 FROM losses WHERE cause = 'both'"),
                 1);
    cr_assert_eq(ask(tracestore_db(fixture.store),
                     "SELECT count = 4 AND calls = 0 AND returns = 4 FROM losses WHERE cause = 'returns'"),
                 1);
    cr_assert_eq(
        ask(tracestore_db(fixture.store),
            "SELECT count = 9 AND calls IS NULL AND returns IS NULL FROM losses WHERE cause = 'sum'"),
        1);
    cr_assert_eq(ask(tracestore_db(fixture.store),
                     "SELECT count IS NULL AND calls IS NULL FROM losses WHERE cause = 'nothing'"),
                 1);
    fixture_close(&fixture);
}
