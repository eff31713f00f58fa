/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A store with packed lists and hashed names, and one of the form before these: they are used alike. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "store/db/name_index.h"
#include "store/segment/segment_counts.h"
#include "tests/unit/store/fixture.h"
#include "tests/unit/store/old_form.h"

static const struct trace_writer_options small_segments = {.segment_bytes = 400};

static void begin(struct fixture *fixture, bool old)
{
    fixture_open(fixture, &small_segments);
    if (old)
        run_sql(tracestore_db(fixture->store), old_form_sql);
    cr_assert_eq(store_has_packed_lists(tracestore_db(fixture->store)), !old);
    cr_assert_eq(store_has_name_hash(tracestore_db(fixture->store)), !old);
    fixture_functions(fixture, 40);
}

/* A run of two threads; the second has its last events in the journal when the run is not ended. */
static void write_run(struct fixture *fixture, struct stream *stream, bool end)
{
    for (int i = 0; i < 2; i++)
        write_events(fixture_thread(fixture, i ? "0.1" : "0.0", TRACE_RETURNS_PROBED), stream, 0,
                     stream->count);
    cr_assert_eq(end ? trace_writer_end(fixture->writer, 5000, 0, NULL)
                     : trace_writer_flush(fixture->writer, 4000, NULL),
                 0);
    trace_writer_free(fixture->writer);
    fixture->writer = NULL;
}

/* What each question answers, in one line. */
static char *answers(sqlite3 *db)
{
    static const char *const questions[] = {
        "SELECT group_concat(segment_id || ' ' || function_id || ' ' || calls) FROM"
        " (SELECT * FROM segment_functions ORDER BY 1, 2)",
        "SELECT group_concat(calls) FROM (SELECT calls FROM segment_functions WHERE segment_id = 2)",
        "SELECT count(*) || ' ' || sum(calls) FROM segment_functions WHERE function_id = 4294967295",
        "SELECT sum(calls) FROM segment_functions WHERE segment_id = '2' AND function_id = 3.0",
        "SELECT count(*) FROM segment_functions WHERE segment_id IS NULL OR function_id = 'x'",
        "SELECT group_concat(run_id || thread || thread_id || function_id || name || calls) FROM"
        " (SELECT * FROM call_counts ORDER BY thread_id, function_id)",
        "SELECT group_concat(calls) FROM call_counts WHERE function_id IN (3, 5, 4294967295) AND thread = "
        "'0.1'",
        "SELECT sum(calls) FROM segments JOIN segment_functions USING (segment_id) WHERE run_id = 1"
        " AND thread_id = 1",
        "SELECT group_concat(name) FROM function_names WHERE name = 'f7' OR name LIKE '%1%'",
        "SELECT count(*) FROM events WHERE function_id = 7",
    };
    sqlite3_str *text = sqlite3_str_new(NULL);

    for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
        sqlite3_stmt *row;

        cr_assert_eq(sqlite3_prepare_v2(db, questions[i], -1, &row, NULL), SQLITE_OK, "%s: %s", questions[i],
                     sqlite3_errmsg(db));
        cr_assert_eq(sqlite3_step(row), SQLITE_ROW, "%s: %s", questions[i], sqlite3_errmsg(db));
        sqlite3_str_appendf(text, "%s\n", sqlite3_column_text(row, 0));
        sqlite3_finalize(row);
    }
    return sqlite3_str_finish(text);
}

Test(forms, answer_alike)
{
    for (int end = 0; end < 2; end++) {
        char *texts[2];
        struct tracestore_totals totals[2];
        struct stream stream = {0};

        stream_generate(&stream, STREAM_LOSSES, 3, 6000);
        for (int old = 0; old < 2; old++) {
            struct fixture fixture;

            begin(&fixture, old);
            write_run(&fixture, &stream, end);
            texts[old] = answers(tracestore_db(fixture.store));
            cr_assert_eq(tracestore_run_totals(fixture.store, 1, &totals[old], NULL), 0);
            cr_assert_eq(tracestore_verify(fixture.store, NULL, NULL, NULL, NULL), 0);
            fixture_close(&fixture);
        }
        cr_assert_str_eq(texts[0], texts[1]);
        cr_assert_gt(strlen(texts[0]), 1000);
        cr_assert_lt(totals[0].catalog_bytes, totals[1].catalog_bytes);
        cr_assert_lt(totals[0].index_bytes, totals[1].index_bytes);
        totals[0].catalog_bytes = totals[1].catalog_bytes;
        totals[0].index_bytes = totals[1].index_bytes;
        cr_assert_eq(memcmp(&totals[0], &totals[1], sizeof(totals[0])), 0);
        sqlite3_free(texts[0]);
        sqlite3_free(texts[1]);
        stream_release(&stream);
    }
}

Test(forms, are_recovered_salvaged_and_deleted_alike)
{
    for (int old = 0; old < 2; old++) {
        struct fixture fixture;
        struct stream stream = {0};
        struct trace_recovered recovered;
        struct trace_salvaged salvaged;
        struct tracestore *made;
        char path[128];
        sqlite3 *db;

        begin(&fixture, old);
        db = tracestore_db(fixture.store);
        stream_generate(&stream, STREAM_LOSSES, 4, 3000);
        write_run(&fixture, &stream, false);
        run_sql(db, "UPDATE runs SET recorder = ''");
        snprintf(path, sizeof(path), "%s/new.db", fixture.folder);
        cr_assert_eq(tracestore_salvage(fixture.path, path, &salvaged, NULL), 0);
        cr_assert_eq(salvaged.lost_segments + salvaged.lost_rows + salvaged.invented, 0);
        cr_assert_eq(tracestore_open(path, TRACESTORE_CHANGE, &made, NULL), 0);
        cr_assert(store_has_packed_lists(tracestore_db(made)) && store_has_name_hash(tracestore_db(made)));
        cr_assert_eq(tracestore_verify(made, NULL, NULL, NULL, NULL), 0);
        cr_assert_eq(
            ask(tracestore_db(made), "SELECT count(*) FROM functions WHERE name_hash = name_hash(name)"), 40);
        cr_assert_eq(tracestore_recover(fixture.store, &recovered, NULL), 0);
        cr_assert_eq(recovered.segments, 2);
        cr_assert_eq(tracestore_verify(fixture.store, NULL, NULL, NULL, NULL), 0);
        cr_assert_eq(ask(db, "SELECT sum(calls) FROM segment_functions"),
                     ask(tracestore_db(made), "SELECT sum(calls) FROM segment_functions"));
        cr_assert_eq(tracestore_delete_run(fixture.store, 1, NULL), 0);
        cr_assert_eq(
            ask(db, "SELECT (SELECT count(*) FROM segment_functions) + (SELECT count(*) FROM functions)"), 0);
        tracestore_free(made);
        stream_release(&stream);
        fixture_close(&fixture);
    }
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

/* In both forms: by the same writer, by one that comes later, and by one that knows nothing of the other. */
Test(forms, a_function_is_written_once)
{
    static const struct trace_run_description run = {.name = "other", .command = "x", .started_ns = 1};
    static const struct trace_image_description image = {
        .path = "/bin/prog", .build_id = "ab", .kind = "main"};

    for (int old = 0; old < 2; old++) {
        struct fixture fixture, other;
        char names[2][32];
        uint32_t ids[4];

        begin(&fixture, old);
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
        cr_assert_eq(
            ask(tracestore_db(fixture.store), "SELECT count(*) FROM functions WHERE name LIKE 'same%'"), 4);
        trace_writer_free(other.writer);
        fixture_close(&fixture);
    }
}

/* A damaged list makes the counts unknown, and nothing else: events are found by looking at the segment. */
Test(forms, a_damaged_list_is_told)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct tracestore_totals totals;
    struct error err = {0};
    sqlite3 *db;
    int64_t events;
    char *message = NULL;

    begin(&fixture, false);
    db = tracestore_db(fixture.store);
    stream_generate(&stream, STREAM_LOSSES, 5, 6000);
    write_run(&fixture, &stream, true);
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
