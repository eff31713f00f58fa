/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tables go_events, goroutines and go_blocks of SQL. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "tests/unit/store/go_fixture.h"

/*
 * Goroutine 1 makes 2, which waits for its channel and is woken; 2 waits for the network; 3, of before, waits
 * for a mutex inside a Cond.Wait and for the condition before; 2 ends; 3 waits for good.
 */
static const struct process_event story[] = {
    {.ns = 10, .goroutine = 1, .other = 2, .kind = GO_EVENT_CREATE, .site = 5, .value = 7},
    {.ns = 20, .goroutine = 2, .kind = GO_EVENT_RUN, .tid = 99},
    {.ns = 30,
     .goroutine = 2,
     .kind = GO_EVENT_OPERATE,
     .operation = GO_OP_CHAN_RECV,
     .object = 64,
     .site = 6},
    {.ns = 31, .goroutine = 2, .kind = GO_EVENT_BLOCK, .value = 14},
    {.ns = 40,
     .goroutine = 1,
     .kind = GO_EVENT_OPERATE,
     .operation = GO_OP_CHAN_SEND,
     .flags = GO_FLAG_DONE,
     .object = 64,
     .site = 8},
    {.ns = 41, .goroutine = 1, .other = 2, .kind = GO_EVENT_WAKE},
    {.ns = 45, .goroutine = 2, .kind = GO_EVENT_RUN},
    {.ns = 50, .goroutine = 2, .kind = GO_EVENT_BLOCK, .value = 2}, /* the network: no operation */
    {.ns = 58, .goroutine = 2, .kind = GO_EVENT_RUN},
    {.ns = 60,
     .goroutine = 3,
     .kind = GO_EVENT_OPERATE,
     .operation = GO_OP_COND_WAIT,
     .object = 80,
     .site = 9},
    {.ns = 61,
     .goroutine = 3,
     .kind = GO_EVENT_OPERATE,
     .operation = GO_OP_MUTEX_UNLOCK,
     .flags = GO_FLAG_INNER | GO_FLAG_DONE,
     .object = 96,
     .site = 9},
    {.ns = 62, .goroutine = 3, .kind = GO_EVENT_BLOCK, .value = 20},
    {.ns = 70, .goroutine = 0, .other = 3, .kind = GO_EVENT_WAKE},
    {.ns = 72,
     .goroutine = 3,
     .kind = GO_EVENT_OPERATE,
     .operation = GO_OP_MUTEX_LOCK,
     .flags = GO_FLAG_INNER,
     .object = 96,
     .site = 9},
    {.ns = 80, .goroutine = 2, .kind = GO_EVENT_END},
    {.ns = 90, .goroutine = 3, .kind = GO_EVENT_BLOCK, .value = 21},
};

static void open_story(struct fixture *fixture, const struct process_event *events, size_t count)
{
    static const char *const reasons[] = {
        [2] = "IO wait", [14] = "chan receive", [20] = "sync.Cond.Wait", [21] = "sync.Mutex.Lock"};
    struct go_program_description program = {.version = "go1.23",
                                             .wait_reasons = reasons,
                                             .wait_reason_count = ARRAY_SIZE(reasons),
                                             .operations = true};
    struct process_writer *go = NULL;
    struct error err = {0};

    fixture_open(fixture, NULL);
    fixture_functions(fixture, 30);
    program.process_id = fixture->process_id;
    program.image_id = fixture->image_id;
    cr_assert_eq(trace_writer_go_program(fixture->writer, &program, &go, &err), 0, "%s", err.message);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(process_writer_append(go, &events[i]), 0);
    cr_assert_eq(trace_writer_end(fixture->writer, 6000, 0, &err), 0, "%s", err.message);
}

/* Expects the query's rows, each with its values joined by blanks, "-" for NULL, rows by ";". */
static void expect_rows(struct fixture *fixture, const char *sql, const char *expected)
{
    sqlite3 *db = tracestore_db(fixture->store);
    sqlite3_stmt *row = NULL;
    char text[2000] = "";

    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    while (sqlite3_step(row) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(row); i++) {
            const char *value = (const char *)sqlite3_column_text(row, i);

            strcat(text, i ? " " : *text ? ";" : "");
            strcat(text, value ? value : "-");
        }
    }
    cr_assert_eq(sqlite3_finalize(row), SQLITE_OK, "%s", sqlite3_errmsg(db));
    cr_assert_str_eq(text, expected);
}

Test(go_tables, events_are_rows)
{
    struct fixture fixture;

    open_story(&fixture, story, ARRAY_SIZE(story));
    expect_rows(&fixture,
                "SELECT run_id, process_id, label, goroutine, seq, ns, kind, operation, object, function_id,"
                " other, value, flags, tid FROM go_events WHERE seq IN (0, 1, 4, 12)",
                "1 1 0.g1 1 0 10 create - - 5 2 7 0 -;1 1 0.g2 2 1 20 run - - - - 0 0 99;"
                "1 1 0.g1 1 4 40 operate chan send 64 8 - 0 4 -;1 1 - - 12 70 wake - - - 3 0 0 -");
    expect_rows(&fixture, "SELECT count(*), min(seq) FROM go_events WHERE ns >= 45 AND ns < 70", "6 6");
    expect_rows(&fixture, "SELECT count(*) FROM go_events WHERE run_id = 1 AND process_id = 1", "16");
    expect_rows(&fixture, "SELECT count(*) FROM go_events WHERE run_id = 2", "0");
    expect_rows(&fixture, "SELECT count(*) FROM go_events WHERE process_id = 2", "0");
    expect_rows(&fixture, "SELECT name FROM go_events JOIN functions USING (function_id) WHERE seq = 4",
                "f8");
    fixture_close(&fixture);
}

Test(go_tables, goroutines_are_what_events_make_of_them)
{
    struct fixture fixture;

    open_story(&fixture, story, ARRAY_SIZE(story));
    expect_rows(&fixture,
                "SELECT label, goroutine, parent, created_ns, ended_ns, function_id, created_at, state,"
                " since_ns, wait_reason, operation, object, site FROM goroutines ORDER BY goroutine",
                "0.g1 1 - - - - - running 10 - chan send 64 8;"
                "0.g2 2 1 10 80 7 5 ended 80 - chan recv 64 6;"
                "0.g3 3 - - - - - blocked 90 sync.Mutex.Lock cond wait 80 9");
    fixture_close(&fixture);
}

Test(go_tables, blocks_know_their_operation_and_who_ended_them)
{
    struct fixture fixture;

    open_story(&fixture, story, ARRAY_SIZE(story));
    expect_rows(
        &fixture,
        "SELECT label, seq, ns, duration_ns, wait_reason, operation, object, site, woken_by"
        " FROM go_blocks ORDER BY seq",
        "0.g2 3 31 10 chan receive chan recv 64 6 1;0.g2 7 50 8 IO wait - - - -;"
        "0.g3 11 62 8 sync.Cond.Wait cond wait 80 9 0;0.g3 15 90 - sync.Mutex.Lock mutex lock 96 9 -");
    fixture_close(&fixture);
}

/* Who wakes others has gone on itself, even if that was not seen: both are rows. */
Test(go_tables, one_event_may_end_two_blocks)
{
    static const struct process_event events[] = {
        {.ns = 10, .goroutine = 1, .kind = GO_EVENT_BLOCK, .value = 14},
        {.ns = 11, .goroutine = 2, .kind = GO_EVENT_BLOCK, .value = 14},
        {.ns = 12, .goroutine = 1, .other = 2, .kind = GO_EVENT_WAKE},
    };
    struct fixture fixture;

    open_story(&fixture, events, ARRAY_SIZE(events));
    expect_rows(&fixture, "SELECT label, duration_ns, woken_by FROM go_blocks", "0.g1 2 -;0.g2 1 1");
    fixture_close(&fixture);
}

/* Where events are missing, neither states nor the ends of what was waited for are known. */
Test(go_tables, what_is_lost_is_unknown)
{
    static const struct process_event events[] = {
        {.ns = 10, .goroutine = 1, .kind = GO_EVENT_BLOCK, .value = 14},
        {.ns = 11, .goroutine = 2, .kind = GO_EVENT_RUN},
        {.ns = 12, .kind = GO_EVENT_LOST, .value = 5},
        {.ns = 13, .goroutine = 1, .kind = GO_EVENT_RUN},
    };
    struct fixture fixture;

    open_story(&fixture, events, ARRAY_SIZE(events));
    expect_rows(&fixture, "SELECT label, state, since_ns FROM goroutines ORDER BY goroutine",
                "0.g1 running 13;0.g2 unknown 12");
    expect_rows(&fixture, "SELECT label, duration_ns FROM go_blocks", "0.g1 -");
    fixture_close(&fixture);
}

/* With less detail the states are known that are seen, and no operation that somebody waits in. */
Test(go_tables, what_is_not_recorded_is_unknown)
{
    static const struct process_event events[] = {
        {.ns = 9, .goroutine = 1, .kind = GO_EVENT_OPERATE, .operation = GO_OP_CHAN_RECV, .object = 8},
        {.ns = 10, .goroutine = 1, .kind = GO_EVENT_BLOCK, .value = 14},
        {.ns = 11, .kind = GO_EVENT_DETAIL, .value = GO_DETAIL_SCHEDULE},
        {.ns = 12, .goroutine = 1, .kind = GO_EVENT_RUN},
        {.ns = 13, .goroutine = 1, .kind = GO_EVENT_BLOCK, .value = 14},
        {.ns = 14, .kind = GO_EVENT_DETAIL, .value = GO_DETAIL_LIVES},
        {.ns = 15, .goroutine = 2, .other = 3, .kind = GO_EVENT_CREATE},
        {.ns = 16, .goroutine = 3, .kind = GO_EVENT_END},
    };
    struct fixture fixture;

    open_story(&fixture, events, ARRAY_SIZE(events));
    expect_rows(&fixture, "SELECT label, state, since_ns FROM goroutines ORDER BY goroutine",
                "0.g1 unknown 14;0.g2 unknown 15;0.g3 ended 16");
    expect_rows(&fixture, "SELECT object, duration_ns FROM go_blocks", "8 2;- -");
    fixture_close(&fixture);
}

/* Goroutines that have come and gone are rows, too. */
Test(go_tables, many_goroutines_come_and_go)
{
    const size_t many = 30000;
    struct process_event *events = calloc(2 * many, sizeof(*events));
    struct fixture fixture;
    int64_t most;

    for (size_t i = 0; i < many; i++) {
        events[2 * i] = (struct process_event){
            .ns = 5 + i, .goroutine = 1, .other = 2 + i, .kind = GO_EVENT_CREATE, .site = 3, .value = 4};
        events[2 * i + 1] = (struct process_event){.ns = 5 + i, .goroutine = 2 + i, .kind = GO_EVENT_END};
    }
    open_story(&fixture, events, 2 * many);
    expect_rows(&fixture, "SELECT state, count(*) FROM goroutines GROUP BY state", "ended 30000;running 1");
    expect_rows(&fixture, "SELECT count(DISTINCT parent) FROM goroutines", "1");
    most = ask(tracestore_db(fixture.store), "SELECT max(goroutine) FROM goroutines");
    cr_assert_eq(most, (int64_t)many + 1);
    free(events);
    fixture_close(&fixture);
}
