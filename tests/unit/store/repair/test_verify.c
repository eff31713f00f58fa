/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/array.h"
#include "base/error.h"
#include "store/segment/call_list.h"
#include "store/segment/event_iter.h"
#include "store/segment/segment.h"
#include "tests/unit/store/fixture.h"

static const struct trace_writer_options small_segments = {.segment_bytes = 400};

struct problems {
    int count;
    char texts[4096]; /* of all of them */
};

static void note(void *context, const struct tracestore_problem *problem)
{
    struct problems *problems = context;

    problems->count++;
    if (strlen(problems->texts) + strlen(problem->text) + 2 < sizeof(problems->texts))
        strcat(strcat(problems->texts, problem->text), "\n");
}

static struct problems verify(struct fixture *fixture)
{
    struct problems problems = {0};
    struct error err = {0};
    uint64_t segments = 0;
    int count = tracestore_verify(fixture->store, note, &problems, &segments, &err);

    cr_assert_geq(count, 0, "%s", err.message);
    cr_assert_eq(count, problems.count);
    cr_assert_eq((int64_t)segments, ask(tracestore_db(fixture->store), "SELECT count(*) FROM segments"));
    return problems;
}

/* One thread of several segments, with times, and an open one. */
static void make_run(struct fixture *fixture, struct stream *stream)
{
    struct thread_writer *thread;

    fixture_open(fixture, &small_segments);
    for (int i = 0; i < 13; i++)
        fixture_function(fixture, (char[]){(char)('a' + i), '\0'});
    thread = fixture_thread(fixture, "0.0", TRACE_RETURNS_PROBED);
    stream_generate(stream, STREAM_LOSSES, 21, 4000);
    for (size_t at = 0; at < stream->count; at += 100) {
        cr_assert_eq(thread_writer_anchor(thread, 10000 + at * 10), 0);
        write_events(thread, stream, at, at + 100);
        if (at % 1000 == 900)
            cr_assert_eq(trace_writer_flush(fixture->writer, 10000 + at * 10 + 1000, NULL), 0);
    }
    cr_assert_gt(ask(tracestore_db(fixture->store), "SELECT count(*) FROM segments"), 4);
}

static void close_run(struct fixture *fixture, struct stream *stream)
{
    fixture_close(fixture);
    stream_release(stream);
}

Test(verify, a_good_store_has_no_problems)
{
    struct fixture fixture;
    struct stream stream = {0};

    make_run(&fixture, &stream);
    cr_assert_gt(ask(tracestore_db(fixture.store), "SELECT count(*) FROM journal"), 0);
    cr_assert_eq(verify(&fixture).count, 0);
    cr_assert_eq(trace_writer_end(fixture.writer, 90000, 0, NULL), 0);
    cr_assert_eq(verify(&fixture).count, 0);
    close_run(&fixture, &stream);
}

/* An SQL function on the list of a segment: (list, function, calls) gives it with that number of calls more
 * for the function, or without the function where `calls` is NULL. */
static void change_list(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    struct function_calls functions[64];
    struct call_list_reader list;
    AUTO_BYTES changed = {0};
    size_t count = 0;

    cr_assert_eq(call_list_open(sqlite3_value_blob(argv[0]), (size_t)sqlite3_value_bytes(argv[0]), &list), 0);
    while (call_list_next(&list, &functions[count]) == 0) {
        bool changes = functions[count].function == (uint32_t)sqlite3_value_int64(argv[1]);

        if (changes)
            functions[count].calls += (uint64_t)sqlite3_value_int64(argv[2]);
        count += !changes || sqlite3_value_type(argv[2]) != SQLITE_NULL;
        cr_assert_lt(count, ARRAY_SIZE(functions));
    }
    cr_assert_eq(call_list_pack(functions, count, &changed), 0);
    sqlite3_result_blob64(context, changed.data, changed.size, SQLITE_TRANSIENT);
}

static void expect_problem(const char *sql, const char *words)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct problems problems;

    make_run(&fixture, &stream);
    cr_assert_eq(sqlite3_create_function(tracestore_db(fixture.store), "change_list", 3, SQLITE_UTF8, NULL,
                                         change_list, NULL, NULL),
                 SQLITE_OK);
    run_sql(tracestore_db(fixture.store), sql);
    problems = verify(&fixture);
    cr_assert_geq(problems.count, 1, "%s", sql);
    cr_assert_not_null(strstr(problems.texts, words), "%s: %s", sql, problems.texts);
    close_run(&fixture, &stream);
}

Test(verify, damage_is_found)
{
    expect_problem(
        "UPDATE segments SET data = substr(data, 1, 50) || x'07' || substr(data, 52) WHERE segment_id = 2",
        "checksum");
    expect_problem("UPDATE segments SET event_count = event_count + 1 WHERE segment_id = 2",
                   "a segment is missing");
    expect_problem("DELETE FROM segments WHERE segment_id = 2", "a segment is missing");
    /* The list of another segment, and one byte of another. */
    expect_problem(
        "UPDATE segments SET functions = (SELECT functions FROM segments WHERE segment_id = 4)"
        " WHERE segment_id = 3",
        "segment_functions");
    expect_problem(
        "UPDATE segments SET functions = CAST(substr(functions, 1, 3) || x'7f' || substr(functions, 5) AS "
        "BLOB)"
        " WHERE segment_id = 3",
        "functions of segment 3 is damaged");
    expect_problem("DELETE FROM functions WHERE function_id = 7", "function 7");
    expect_problem("UPDATE journal SET data = x'0102' || data", "journal");
    expect_problem("PRAGMA foreign_keys = OFF; DELETE FROM threads", "refers to nothing");
}

Test(verify, wrong_counts_are_found)
{
    expect_problem("UPDATE segments SET functions = change_list(functions, 5, 1) WHERE segment_id = 3",
                   "segment_functions");
    /* As many calls as before, but not of the same functions. */
    expect_problem(
        "UPDATE segments SET functions = change_list(change_list(functions, 5, 1), 6, -1)"
        " WHERE segment_id = 3",
        "their numbers of calls");
    expect_problem(
        "UPDATE segments SET functions = change_list(functions, 4294967295, NULL) WHERE segment_id = 3",
        "does not have its functions");
}

/* Of a closed segment and of an open one. */
Test(verify, call_sites_that_nobody_registered_are_found)
{
    for (int ended = 0; ended < 2; ended++) {
        struct fixture fixture;
        struct problems problems;
        struct thread_writer *thread;
        struct trace_thread_description description = {.label = "0.0", .call_sites = true};

        fixture_open(&fixture, NULL);
        description.process_id = fixture.process_id;
        cr_assert_eq(trace_writer_thread(fixture.writer, &description, &thread, NULL), 0);
        cr_assert_eq(thread_writer_call_from(thread, fixture_function(&fixture, "f"), 77), 0);
        cr_assert_eq(ended ? trace_writer_end(fixture.writer, 9, 0, NULL)
                           : trace_writer_flush(fixture.writer, 9, NULL),
                     0);
        problems = verify(&fixture);
        cr_assert_eq(problems.count, 1);
        cr_assert_not_null(strstr(problems.texts, "call site 77"), "%s", problems.texts);
        fixture_close(&fixture);
    }
}

/* Stores the last segment again as if the nesting of the first call that is open at its begin were assumed.
 */
static void assume_first_open(sqlite3 *db)
{
    static const uint8_t one[] = {0, 1}; /* a run of no zeros, of one one, and zeros */
    AUTO_BYTES payload = {0};
    AUTO_BYTES room = {0};
    struct segment_parts parts;
    sqlite3_stmt *row, *update;

    cr_assert_eq(sqlite3_prepare_v2(db, "SELECT data, segment_id FROM segments ORDER BY first_seq DESC", -1,
                                    &row, NULL),
                 SQLITE_OK);
    cr_assert_eq(sqlite3_step(row), SQLITE_ROW);
    cr_assert_eq(
        segment_parse(sqlite3_column_blob(row, 0), (size_t)sqlite3_column_bytes(row, 0), &room, &parts), 0);
    parts.flags |= SEGMENT_ASSUMED;
    parts.sections[SECTION_ASSUMED] = (struct section){one, sizeof(one)};
    cr_assert_eq(segment_assemble(&parts, &payload), 0);
    sqlite3_prepare_v2(db, "UPDATE segments SET data = ?1, checksum = ?2 WHERE segment_id = ?3", -1, &update,
                       NULL);
    sqlite3_bind_blob(update, 1, payload.data, (int)payload.size, SQLITE_TRANSIENT);
    sqlite3_bind_int64(update, 2, (int64_t)crc32(0, payload.data, (unsigned)payload.size));
    sqlite3_bind_int64(update, 3, sqlite3_column_int64(row, 1));
    sqlite3_finalize(row);
    cr_assert_eq(sqlite3_step(update), SQLITE_DONE);
    sqlite3_finalize(update);
}

Test(verify, open_calls_that_are_assumed_no_more_are_found)
{
    struct fixture fixture;
    struct thread_writer *thread;
    struct problems problems;

    fixture_open(&fixture, &(struct trace_writer_options){.segment_events = 4});
    thread = fixture_thread(&fixture, "0.0", TRACE_RETURNS_INFERRED);
    for (int i = 0; i < 8; i++)
        cr_assert_eq(thread_writer_call_assumed(thread, fixture_function(&fixture, "f"), 0), 0);
    cr_assert_eq(thread_writer_call(thread, fixture_function(&fixture, "f")), 0);
    cr_assert_eq(trace_writer_end(fixture.writer, 90000, 0, NULL), 0);
    cr_assert_eq(verify(&fixture).count, 0);
    assume_first_open(tracestore_db(fixture.store));
    problems = verify(&fixture);
    cr_assert_eq(problems.count, 1);
    cr_assert_not_null(strstr(problems.texts, "does not begin inside the calls"), "%s", problems.texts);
    fixture_close(&fixture);
}

/* A damaged segment is told once and skipped; what is before and behind it is read. */
Test(verify, a_damaged_segment_is_skipped_by_readers)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct event_iter *iter;
    struct event event;
    struct error err = {0};
    uint64_t from, behind, events = 0;
    int errors = 0, code;

    make_run(&fixture, &stream);
    from = (uint64_t)ask(tracestore_db(fixture.store), "SELECT first_seq FROM segments WHERE segment_id = 3");
    behind = from + (uint64_t)ask(tracestore_db(fixture.store),
                                  "SELECT event_count FROM segments WHERE segment_id = 3");
    run_sql(tracestore_db(fixture.store),
            "UPDATE segments SET data = zeroblob(length(data)) WHERE segment_id = 3");
    cr_assert_eq(event_iter_open(fixture.store, 1, 0, &iter, NULL), 0);
    while ((code = event_iter_next(iter, &event, &err)) != 1) {
        if (code) {
            cr_assert_eq(code, -EBADMSG);
            cr_assert_not_null(strstr(err.message, "segment 3 "), "%s", err.message);
            cr_assert_eq(++errors, 1);
            continue;
        }
        cr_assert(event.seq < from || event.seq >= behind);
        events++;
    }
    cr_assert_eq(errors, 1);
    cr_assert_eq(events, stream.count - (behind - from));
    event_iter_free(iter);

    /* A segment that is gone altogether is told in the same way. */
    run_sql(tracestore_db(fixture.store), "DELETE FROM segments WHERE segment_id = 3");
    cr_assert_eq(event_iter_open(fixture.store, 1, 0, &iter, NULL), 0);
    for (errors = 0, events = 0; (code = event_iter_next(iter, &event, &err)) != 1;) {
        errors += code != 0;
        events += code == 0;
        cr_assert_leq(errors, 1);
    }
    cr_assert_eq(errors, 1);
    cr_assert_eq(events, stream.count - (behind - from));
    event_iter_free(iter);
    close_run(&fixture, &stream);
}

/* ------------------------------------------------------------------------------------------ constraints */

/* Events that the range gives, and in `ret_decoded` the segments that were decoded for them. */
static uint64_t walk(struct fixture *fixture, const struct event_range *range, uint64_t *ret_decoded,
                     struct event *ret_first)
{
    uint64_t before = tracestore_decoded_segments(), events = 0;
    struct event_iter *iter;
    struct event event;
    int code;

    cr_assert_eq(event_iter_open_db(tracestore_db(fixture->store), 1, range, &iter, NULL), 0);
    while ((code = event_iter_next(iter, &event, NULL)) == 0)
        if (!events++)
            *ret_first = event;
    cr_assert_eq(code, 1);
    event_iter_free(iter);
    *ret_decoded = tracestore_decoded_segments() - before;
    return events;
}

Test(event_iter, reads_only_segments_that_can_match)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct event first;
    uint64_t decoded, all;

    make_run(&fixture, &stream);
    all = (uint64_t)ask(tracestore_db(fixture.store), "SELECT count(*) FROM segments") + 1;
    cr_assert_eq(walk(&fixture, NULL, &decoded, &first), stream.count);
    cr_assert_eq(decoded, all);
    cr_assert_eq(walk(&fixture, &(struct event_range){.first_seq = 1234, .last_seq = 1240}, &decoded, &first),
                 7);
    cr_assert_leq(decoded, 2);
    cr_assert_eq(first.seq, 1234);
    cr_assert_eq(
        walk(&fixture, &(struct event_range){.first_seq = 3999, .last_seq = UINT64_MAX}, &decoded, &first),
        1);
    cr_assert_eq(decoded, 1);
    cr_assert_eq(
        walk(&fixture, &(struct event_range){.first_seq = 4000, .last_seq = UINT64_MAX}, &decoded, &first),
        0);
    cr_assert_eq(decoded, 0);

    /* Time: anchors are at 10000 + 10 * seq. */
    cr_assert_gt(walk(&fixture,
                      &(struct event_range){.last_seq = UINT64_MAX, .from_ns = 20000, .to_ns = 20100},
                      &decoded, &first),
                 0);
    cr_assert_leq(decoded, 4);
    cr_assert_leq(first.ns, 20000);
    close_run(&fixture, &stream);
}

Test(event_iter, a_function_that_only_returns_in_a_segment_is_found)
{
    const struct function_set seven = {.ids = (uint32_t[]){7}, .count = 1};
    struct fixture fixture;
    struct thread_writer *thread;
    struct event event;
    struct event_iter *iter;
    bool returned = false;
    size_t depth;

    fixture_open(&fixture, &(struct trace_writer_options){.segment_events = 10});
    thread = fixture_thread(&fixture, "0.0", TRACE_RETURNS_PROBED);
    cr_assert_eq(thread_writer_anchor(thread, 500), 0);
    thread_writer_call(thread, 7);
    for (int i = 0; i < 50; i++) {
        thread_writer_call(thread, 8);
        thread_writer_return(thread);
    }
    thread_writer_return(thread);
    cr_assert_eq(trace_writer_end(fixture.writer, 900, 0, NULL), 0);
    cr_assert_eq(event_iter_open_db(tracestore_db(fixture.store), 1,
                                    &(struct event_range){.last_seq = UINT64_MAX, .functions = &seven}, &iter,
                                    NULL),
                 0);
    while (event_iter_next(iter, &event, NULL) == 0) {
        cr_assert(event.seq < 10 || event.seq >= 100, "segment without function 7: event %d", (int)event.seq);
        if (event.kind != EVENT_RETURN || event.function != 7)
            continue;
        returned = true;
        cr_assert_eq(event.seq, 101);
        cr_assert_eq(event_iter_ended_call(iter)->seq, 0);
        cr_assert_eq(event_iter_ended_call(iter)->ns, 500);
        event_iter_open_calls(iter, &depth);
        cr_assert_eq(depth, 0);
    }
    cr_assert(returned);
    event_iter_free(iter);
    fixture_close(&fixture);
}
