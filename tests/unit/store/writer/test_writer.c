/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "tests/unit/store/fixture.h"

static const struct trace_writer_options small_segments = {.segment_bytes = 300, .segment_events = 5000};

static void flush(struct fixture *fixture, uint64_t ns)
{
    struct error err = {0};

    cr_assert_eq(trace_writer_flush(fixture->writer, ns, &err), 0, "%s", err.message);
}

static void end(struct fixture *fixture)
{
    struct error err = {0};

    cr_assert_eq(trace_writer_end(fixture->writer, 99000, 3, &err), 0, "%s", err.message);
}

/* Everything comes back, whatever the stream, at every flush and after the end, with large and small
 * segments. */
static void write_and_read(enum stream_kind kind, const struct trace_writer_options *options, size_t step)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct thread_writer *thread;
    int64_t id;

    fixture_open(&fixture, options);
    thread = fixture_thread(&fixture, "0.0", TRACE_RETURNS_PROBED);
    id = thread_writer_id(thread);
    stream_generate(&stream, kind, 11, 20000);
    for (size_t at = 0; at < stream.count; at += step) {
        size_t to = at + step < stream.count ? at + step : stream.count;

        write_events(thread, &stream, at, to);
        expect_stream(fixture.store, id, &stream, at); /* not yet flushed */
        flush(&fixture, 3000 + to);
        expect_stream(fixture.store, id, &stream, to);
    }
    end(&fixture);
    expect_stream(fixture.store, id, &stream, stream.count);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT count(*) FROM journal"), 0);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT sum(event_count) FROM segments"),
                 (int64_t)stream.count);
    fixture_close(&fixture);
    stream_release(&stream);
}

Test(writer, every_kind_in_large_segments)
{
    for (int kind = 0; kind < STREAM_KINDS; kind++)
        write_and_read((enum stream_kind)kind, NULL, 3333);
}

Test(writer, every_kind_in_small_segments)
{
    for (int kind = 0; kind < STREAM_KINDS; kind++)
        write_and_read((enum stream_kind)kind, &small_segments, 1777);
}

/* A journal row after every event. */
Test(writer, journal_is_right_at_every_flush)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct thread_writer *thread;

    fixture_open(&fixture, &small_segments);
    thread = fixture_thread(&fixture, "0.0", TRACE_RETURNS_PROBED);
    stream_generate(&stream, STREAM_LOSSES, 2, 250);
    for (size_t i = 0; i < stream.count; i++) {
        cr_assert_eq(thread_writer_anchor(thread, 5000 + 10 * i), 0);
        write_events(thread, &stream, i, i + 1);
        flush(&fixture, 5000 + 10 * i + 5);
        expect_stream(fixture.store, thread_writer_id(thread), &stream, i + 1);
    }
    fixture_close(&fixture);
    stream_release(&stream);
}

/* Beyond 65,535 functions in one thread. */
Test(writer, more_functions_than_local_ids)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct thread_writer *thread;

    fixture_open(&fixture, &(struct trace_writer_options){.segment_bytes = 64u << 20});
    thread = fixture_thread(&fixture, "0.0", TRACE_RETURNS_PROBED);
    for (uint32_t i = 0; i < 70000; i++) {
        stream_add(&stream, i * 61 + 1);
        stream_add(&stream, 0);
    }
    write_events(thread, &stream, 0, stream.count);
    end(&fixture);
    expect_stream(fixture.store, thread_writer_id(thread), &stream, stream.count);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT count(*) FROM segments"), 2);
    fixture_close(&fixture);
    stream_release(&stream);
}

/* The writer goes away without an end: what was flushed is there, what was not is not, and the run says so.
 */
Test(writer, killed_recorder_leaves_what_was_flushed)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct thread_writer *thread;
    struct tracestore_run run;
    int64_t id;

    fixture_open(&fixture, &small_segments);
    fixture_functions(&fixture, 26);
    thread = fixture_thread(&fixture, "0.0", TRACE_RETURNS_PROBED);
    id = thread_writer_id(thread);
    stream_generate(&stream, STREAM_LOOPS, 3, 5000);
    write_events(thread, &stream, 0, 4000);
    flush(&fixture, 77777);
    write_events(thread, &stream, 4000, 5000);
    trace_writer_free(fixture.writer);
    fixture.writer = NULL;
    tracestore_free(fixture.store);

    cr_assert_eq(tracestore_open(fixture.path, TRACESTORE_READ, &fixture.store, NULL), 0);
    expect_stream(fixture.store, id, &stream, 4000);
    cr_assert_eq(ask(tracestore_db(fixture.store),
                     "SELECT ns FROM losses WHERE cause = 'unfinished' AND count IS NULL"
                     " AND thread_id IS NULL"),
                 77777);
    cr_assert_eq(tracestore_find_run(fixture.store, "latest", &run, NULL), 0);
    cr_assert_eq(run.ended_ns, 0);
    tracestore_run_release(&run);
    cr_assert_eq(tracestore_verify(fixture.store, NULL, NULL, NULL, NULL), 0);
    fixture_close(&fixture);
    stream_release(&stream);
}

Test(writer, the_end_takes_back_unfinished)
{
    struct fixture fixture;

    fixture_open(&fixture, NULL);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT count(*) FROM losses WHERE cause = 'unfinished'"),
                 1);
    end(&fixture);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT count(*) FROM losses"), 0);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT exit_status FROM runs"), 3);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT ended_ns FROM runs"), 99000);
    fixture_close(&fixture);
}

Test(writer, two_recorders_on_one_store)
{
    struct fixture first;
    struct stream streams[2] = {0};
    struct tracestore *store;
    struct trace_writer *writer;
    struct thread_writer *threads[2];
    int64_t process_id;
    const struct trace_run_description run = {.command = "/usr/bin/other", .started_ns = 5};
    const struct trace_process_description process = {.pid = 9, .rank = -1};

    fixture_open(&first, &small_segments);
    threads[0] = fixture_thread(&first, "0.0", TRACE_RETURNS_PROBED);
    cr_assert_eq(tracestore_open(first.path, TRACESTORE_CREATE, &store, NULL), 0);
    cr_assert_eq(trace_writer_begin(store, &run, &small_segments, &writer, NULL), 0);
    cr_assert_eq(trace_writer_process(writer, &process, &process_id, NULL), 0);
    cr_assert_eq(trace_writer_thread(
                     writer, &(struct trace_thread_description){.process_id = process_id, .label = "0.0"},
                     &threads[1], NULL),
                 0);
    for (int i = 0; i < 2; i++)
        stream_generate(&streams[i], i ? STREAM_RANDOM : STREAM_LOOPS, 8, 6000);
    for (size_t at = 0; at < 6000; at += 500) {
        write_events(threads[0], &streams[0], at, at + 500);
        write_events(threads[1], &streams[1], at, at + 500);
        flush(&first, 4000 + at);
        cr_assert_eq(trace_writer_flush(writer, 4000 + at, NULL), 0);
    }
    cr_assert_eq(trace_writer_end(writer, 9000, -1, NULL), 0);
    expect_stream(first.store, thread_writer_id(threads[0]), &streams[0], 6000);
    expect_stream(first.store, thread_writer_id(threads[1]), &streams[1], 6000);
    cr_assert_eq(
        ask(tracestore_db(store), "SELECT count(*) FROM runs WHERE name = 'other-2' AND exit_status IS NULL"),
        1);
    trace_writer_free(writer);
    tracestore_free(store);
    fixture_close(&first);
    stream_release(&streams[0]);
    stream_release(&streams[1]);
}

/* A full disk: the flush fails, and the next one has everything. */
Test(writer, a_failed_flush_loses_nothing)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct thread_writer *thread;
    struct error err = {0};
    char sql[80];
    int64_t id;

    fixture_open(&fixture, &small_segments);
    fixture_functions(&fixture, 300);
    thread = fixture_thread(&fixture, "0.0", TRACE_RETURNS_PROBED);
    id = thread_writer_id(thread);
    stream_generate(&stream, STREAM_RANDOM, 12, 30000);
    write_events(thread, &stream, 0, 1000);
    flush(&fixture, 2000);
    write_events(thread, &stream, 1000, 30000);
    snprintf(sql, sizeof(sql), "PRAGMA max_page_count = %lld",
             (long long)ask(tracestore_db(fixture.store), "PRAGMA page_count"));
    run_sql(tracestore_db(fixture.store), sql);
    cr_assert_eq(trace_writer_flush(fixture.writer, 3000, &err), -ENOSPC);
    cr_assert_not_null(strstr(err.message, "no space left"), "%s", err.message);
    cr_assert_gt(trace_writer_pending_bytes(fixture.writer), 10000);
    expect_stream(fixture.store, id, &stream, 1000);
    run_sql(tracestore_db(fixture.store), "PRAGMA max_page_count = 1000000");
    flush(&fixture, 4000);
    cr_assert_eq(trace_writer_pending_bytes(fixture.writer), 0);
    expect_stream(fixture.store, id, &stream, 30000);
    cr_assert_eq(tracestore_verify(fixture.store, NULL, NULL, NULL, NULL), 0);
    fixture_close(&fixture);
    stream_release(&stream);
}

/* Ten thousand flushes of a slow thread: the journal is rewritten before it gets long. */
Test(writer, the_journal_stays_short)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct thread_writer *thread;
    int64_t most = 0, bytes;

    fixture_open(&fixture, NULL);
    run_sql(tracestore_db(fixture.store), "PRAGMA synchronous = OFF");
    thread = fixture_thread(&fixture, "0.0", TRACE_RETURNS_PROBED);
    stream_generate(&stream, STREAM_RANDOM, 12, 200000);
    for (size_t at = 0; at < stream.count; at += 4) {
        write_events(thread, &stream, at, at + 4);
        flush(&fixture, 3000 + at);
        if (at % 400 == 0) {
            bytes = ask(tracestore_db(fixture.store), "SELECT sum(length(data)) FROM journal");
            most = bytes > most ? bytes : most;
        }
    }
    cr_assert_gt(most, 900000, "the test does not come near the limit: %lld", (long long)most);
    cr_assert_lt(most, 1400000, "%lld", (long long)most);
    expect_stream(fixture.store, thread_writer_id(thread), &stream, stream.count);
    fixture_close(&fixture);
    stream_release(&stream);
}

/* Threads that wait take nothing in a flush. */
Test(writer, idle_threads_are_not_written)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct thread_writer *thread = NULL;

    fixture_open(&fixture, NULL);
    for (int i = 0; i < 200; i++) {
        char label[16];

        snprintf(label, sizeof(label), "0.%d", i);
        thread = fixture_thread(&fixture, label, TRACE_RETURNS_PROBED);
    }
    stream_generate(&stream, STREAM_LOOPS, 1, 100);
    write_events(thread, &stream, 0, 100);
    flush(&fixture, 3000);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT count(*) FROM journal"), 1);
    cr_assert_lt(ask(tracestore_db(fixture.store), "SELECT length(data) FROM journal"), 300);
    flush(&fixture, 4000);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT count(*) FROM journal"), 1);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT ns FROM losses"), 4000);
    fixture_close(&fixture);
    stream_release(&stream);
}

Test(writer, losses_and_ends_are_rows)
{
    struct fixture fixture;
    struct thread_writer *thread;

    fixture_open(&fixture, NULL);
    thread = fixture_thread(&fixture, "0.0", TRACE_RETURNS_PROBED);
    cr_assert_eq(thread_writer_call(thread, 5), 0);
    cr_assert_eq(thread_writer_lost(thread, 4444, 17, "ring full", NULL), 0);
    cr_assert_eq(trace_writer_loss(fixture.writer, 5555, 0, "late", NULL), 0);
    cr_assert_eq(trace_writer_blind(fixture.writer, 5, 100, 0, "governor", 1e6, NULL), 0);
    cr_assert_eq(trace_writer_tag(fixture.writer, "branch", "main", NULL), 0);
    cr_assert_eq(thread_writer_end(thread, 6666, NULL), 0);
    flush(&fixture, 7000);
    cr_assert_eq(ask(tracestore_db(fixture.store),
                     "SELECT count FROM losses WHERE seq = 1 AND ns = 4444 AND thread_id = 1"
                     " AND cause = 'ring full'"),
                 17);
    cr_assert_eq(ask(tracestore_db(fixture.store),
                     "SELECT count(*) FROM losses WHERE cause = 'late' AND seq IS NULL"
                     " AND thread_id IS NULL AND count IS NULL"),
                 1);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT ended_ns FROM threads"), 6666);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT count(*) FROM blind WHERE to_ns IS NULL"), 1);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT count(*) FROM tags WHERE value = 'main'"), 1);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT count(*) FROM journal"), 0,
                 "the thread has ended");
    cr_assert_eq(trace_writer_relabel_process(fixture.writer, fixture.process_id, 12, NULL), 0);
    flush(&fixture, 8000);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT count(*) FROM threads WHERE label = '12.0'"), 1);
    fixture_close(&fixture);
}

/* The rows of the journal, as another program sees them that opens the store and leaves it. (A forked child
 * would not do: it inherits what SQLite knows about this process's locks.) */
static int64_t visit(const char *path)
{
    char command[200], answer[32] = "";
    FILE *shell;

    snprintf(command, sizeof(command), "sqlite3 '%s' 'SELECT count(*) FROM journal'", path);
    shell = popen(command, "r");
    cr_assert_not_null(shell);
    cr_assert_not_null(fgets(answer, sizeof(answer), shell));
    cr_assert_eq(pclose(shell), 0);
    return strtoll(answer, NULL, 10);
}

/* The last one to leave a database folds and deletes the log, unless a lock says that somebody else is there:
 * the writer must not lose that lock by anything it does. */
Test(writer, others_that_come_and_go_do_not_take_the_log_away)
{
    struct fixture fixture;
    struct thread_writer *thread;
    uint32_t function;

    fixture_open(&fixture, NULL);
    thread = fixture_thread(&fixture, "0.0", TRACE_RETURNS_PROBED);
    function = fixture_function(&fixture, "f");
    for (int64_t i = 1; i <= 5; i++) {
        thread_writer_call(thread, function);
        thread_writer_return(thread);
        flush(&fixture, (uint64_t)i * 1000);
        cr_assert_eq(visit(fixture.path), i, "flush %d is not seen", (int)i);
    }
    fixture_close(&fixture);
}

Test(writer, blind_functions_end_and_plans_are_kept_by_binary)
{
    struct trace_budget_plan *plan;
    struct fixture fixture;
    size_t count;
    sqlite3 *db;

    fixture_open(&fixture, NULL);
    db = tracestore_db(fixture.store);
    cr_assert_eq(trace_writer_blind(fixture.writer, 5, 100, 0, "budget", 1e6, NULL), 0);
    cr_assert_eq(trace_writer_blind(fixture.writer, 5, 300, 0, "budget", 1e6, NULL), 0);
    flush(&fixture, 1000);
    cr_assert_eq(trace_writer_blind_end(fixture.writer, 5, 100, 200, 42, 7, NULL), 0);
    cr_assert_eq(trace_writer_blind_end(fixture.writer, 5, 300, 0, -1, 8, NULL), 0);
    cr_assert_eq(trace_writer_budget_plan(fixture.writer, "abcd", 0x2000, 5e5, NULL), 0);
    cr_assert_eq(trace_writer_budget_plan(fixture.writer, "abcd", 0x1000, 1e6, NULL), 0);
    cr_assert_eq(trace_writer_budget_plan(fixture.writer, "abcd", 0x3000, 1e6, NULL), 0);
    cr_assert_eq(trace_writer_budget_plan(fixture.writer, "other", 0x1000, 1e6, NULL), 0);
    cr_assert_eq(trace_writer_budget_plan(fixture.writer, "abcd", 0x3000, 0, NULL), 0);
    flush(&fixture, 2000);
    cr_assert_eq(ask(db, "SELECT to_ns * 1000 + calls_missed FROM blind WHERE from_ns = 100"), 200042);
    cr_assert_eq(
        ask(db, "SELECT count(*) FROM blind WHERE from_ns = 300 AND to_ns IS NULL AND calls_missed IS NULL"),
        1);
    cr_assert_eq(tracestore_budget_plan(fixture.store, "abcd", &plan, &count, NULL), 0);
    cr_assert_eq(count, 2);
    cr_assert_eq(plan[0].address, 0x1000);
    cr_assert_float_eq(plan[1].calls_per_second, 5e5, 0.1);
    free(plan);
    fixture_close(&fixture);
}
