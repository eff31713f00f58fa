/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The lists of functions of segments, and the hashes of their names. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "store/db/name_index.h"
#include "tests/unit/store/fixture.h"

static const struct trace_writer_options small_segments = {.segment_bytes = 400};

static void begin(struct fixture *fixture)
{
    fixture_open(fixture, &small_segments);
    fixture_functions(fixture, 40);
}

/* A run of two threads. */
static void write_run(struct fixture *fixture, struct stream *stream)
{
    for (int i = 0; i < 2; i++)
        write_events(fixture_thread(fixture, i ? "0.1" : "0.0", TRACE_RETURNS_PROBED), stream, 0,
                     stream->count);
    cr_assert_eq(trace_writer_end(fixture->writer, 5000, 0, NULL), 0);
    trace_writer_free(fixture->writer);
    fixture->writer = NULL;
}

#define NAMES 20000

/* Two names of one hash: there should be twenty such pairs among so many. */
static void find_collision(char first[32], char second[32])
{
    static uint32_t hashes[NAMES];
    struct generator generator = {1};
    int found = -1;

    for (int i = 0; i < NAMES && found < 0; i++) {
        snprintf(first, 32, "same_%016llx", (unsigned long long)generator_next(&generator));
        hashes[i] = function_name_hash(first);
        for (int other = 0; other < i; other++)
            if (hashes[other] == hashes[i])
                found = other;
    }
    cr_assert_geq(found, 0);
    generator = (struct generator){1};
    for (int i = 0; i <= found; i++)
        snprintf(second, 32, "same_%016llx", (unsigned long long)generator_next(&generator));
    cr_assert_str_neq(first, second);
    cr_assert_eq(function_name_hash(first), function_name_hash(second));
}

static uint32_t add(struct fixture *fixture, const char *name, uint64_t address)
{
    const struct trace_function_description function = {.name = name, .address = address};
    uint32_t id;

    cr_assert_eq(trace_writer_function(fixture->writer, fixture->image_id, &function, &id, NULL), 0);
    return id;
}

/* By the same writer, by one that comes later, and by one that knows nothing of the other. */
Test(function_lists, a_function_is_written_once)
{
    static const struct trace_run_description run = {.name = "other", .command = "x", .started_ns = 1};
    static const struct trace_image_description image = {
        .path = "/bin/prog", .build_id = "ab", .kind = "main"};

    struct fixture fixture, other;
    char names[2][32];
    uint32_t ids[4];

    begin(&fixture);
    find_collision(names[0], names[1]);
    cr_assert_eq(trace_writer_image(fixture.writer, &image, &fixture.image_id, NULL), 0);
    for (int i = 0; i < 4; i++)
        ids[i] = add(&fixture, names[i % 2], i < 2 ? 0 : 16);
    other = fixture;
    cr_assert_eq(trace_writer_begin(fixture.store, &run, NULL, &other.writer, NULL), 0);
    cr_assert_eq(trace_writer_image(other.writer, &image, &other.image_id, NULL), 0);
    add(&other, names[0], 0); /* before the first writer has committed it */
    cr_assert_eq(trace_writer_flush(fixture.writer, 10, NULL), 0);
    cr_assert_eq(trace_writer_flush(other.writer, 11, NULL), 0);
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(add(&fixture, names[i % 2], i < 2 ? 0 : 16), ids[i]);
        add(&other, names[i % 2], i < 2 ? 0 : 16);
    }
    cr_assert_eq(trace_writer_flush(other.writer, 12, NULL), 0);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT count(*) FROM functions WHERE name LIKE 'same%'"),
                 4);
    trace_writer_free(other.writer);
    fixture_close(&fixture);
}

/* A damaged list makes the counts unknown, and nothing else: events are found by looking at the segment. */
Test(function_lists, a_damaged_list_is_told)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct tracestore_totals totals;
    struct error err = {0};
    sqlite3 *db;
    int64_t events;
    char *message = NULL;

    begin(&fixture);
    db = tracestore_db(fixture.store);
    stream_generate(&stream, STREAM_LOSSES, 5, 6000);
    write_run(&fixture, &stream);
    events = ask(db, "SELECT count(*) FROM events WHERE function_id = 7");
    run_sql(
        db,
        "UPDATE segments SET functions = CAST(x'02' || substr(functions, 2) AS BLOB) WHERE segment_id = 2;"
        "UPDATE segments SET functions = substr(functions, 2) WHERE segment_id = 3;");
    cr_assert_eq(ask(db, "SELECT count(*) FROM events WHERE function_id = 7"), events);
    cr_assert_gt(ask(db, "SELECT sum(calls) FROM segment_functions WHERE segment_id = 4"), 0);
    cr_assert_eq(sqlite3_exec(db, "SELECT sum(calls) FROM call_counts", NULL, NULL, &message),
                 SQLITE_CORRUPT);
    cr_assert_not_null(strstr(message, "functions of segment"), "%s", message);
    sqlite3_free(message);
    cr_assert_eq(tracestore_run_totals(fixture.store, 1, &totals, &err), -EBADMSG);
    cr_assert_not_null(strstr(err.message, "functions of segment"), "%s", err.message);
    cr_assert_geq(tracestore_verify(fixture.store, NULL, NULL, NULL, NULL), 1);
    cr_assert_eq(tracestore_delete_run(fixture.store, 1, &err), 0, "%s", err.message);
    cr_assert_eq(tracestore_verify(fixture.store, NULL, NULL, NULL, NULL), 0);
    stream_release(&stream);
    fixture_close(&fixture);
}
