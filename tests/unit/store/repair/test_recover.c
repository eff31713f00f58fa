/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Recovering and salvaging: what was whole is kept, what was not is told; and no damage makes anything crash,
 * hang, or pass for whole. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/error.h"
#include "tests/unit/repeats.h"
#include "tests/unit/store/fixture.h"

static const struct trace_writer_options small_segments = {.segment_events = 370};

struct file {
    uint8_t *bytes;
    size_t size;
};

static struct file read_file(const char *path)
{
    struct file file = {0};
    int fd = open(path, O_RDONLY);

    cr_assert_geq(fd, 0);
    file.size = (size_t)lseek(fd, 0, SEEK_END);
    file.bytes = malloc(file.size);
    cr_assert_not_null(file.bytes);
    cr_assert_eq(pread(fd, file.bytes, file.size, 0), (ssize_t)file.size);
    close(fd);
    return file;
}

static void write_file(const char *path, const uint8_t *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, bytes, size), (ssize_t)size);
    close(fd);
}

/* A run of two threads, of several segments and an open one each; its recorder is gone. The store is closed,
 * and has all in one file. */
static void make_killed(struct fixture *fixture, struct stream *stream, size_t events)
{
    struct thread_writer *threads[2];

    fixture_open(fixture, &small_segments);
    fixture_functions(fixture, 13);
    threads[0] = fixture_thread(fixture, "0.0", TRACE_RETURNS_PROBED);
    threads[1] = fixture_thread(fixture, "0.1", TRACE_RETURNS_PROBED);
    stream_generate(stream, STREAM_LOSSES, 21, events);
    for (size_t at = 0; at < stream->count; at += 100) {
        for (int i = 0; i < 2; i++) {
            cr_assert_eq(thread_writer_anchor(threads[i], 10000 + at * 10), 0);
            write_events(threads[i], stream, at, at + 100);
        }
        if (at % 300 == 200)
            cr_assert_eq(trace_writer_flush(fixture->writer, 10000 + at * 10 + 1000, NULL), 0);
    }
    cr_assert_eq(trace_writer_flush(fixture->writer, 99000, NULL), 0);
    trace_writer_free(fixture->writer);
    fixture->writer = NULL;
    run_sql(tracestore_db(fixture->store), "UPDATE runs SET recorder = 'gone 1 1'");
    cr_assert_gt(ask(tracestore_db(fixture->store), "SELECT count(*) FROM segments"), 4);
    cr_assert_gt(ask(tracestore_db(fixture->store), "SELECT count(*) FROM journal"), 1);
    tracestore_free(fixture->store);
    fixture->store = NULL;
}

static void open_store(struct fixture *fixture, const char *path)
{
    struct error err = {0};

    tracestore_free(fixture->store);
    fixture->store = NULL;
    cr_assert_eq(tracestore_open(path, TRACESTORE_CHANGE, &fixture->store, &err), 0, "%s", err.message);
}

/* ------------------------------------------------------------------------------------------ in place */

Test(recover, a_killed_run_is_closed_with_all_that_was_committed)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct trace_recovered recovered;
    struct tracestore_totals before, after;
    struct tracestore_run run;

    make_killed(&fixture, &stream, 4000);
    open_store(&fixture, fixture.path);
    cr_assert_eq(tracestore_run_totals(fixture.store, 1, &before, NULL), 0);
    cr_assert_eq(tracestore_recover(fixture.store, &recovered, NULL), 0);
    cr_assert_eq(recovered.runs, 1);
    cr_assert_eq(recovered.segments, 2);
    cr_assert_gt(recovered.events, 0);
    cr_assert_eq(recovered.damaged_tails, 0);
    cr_assert_eq(tracestore_run_totals(fixture.store, 1, &after, NULL), 0);
    cr_assert_eq(after.events, before.events);
    cr_assert_eq(after.calls, before.calls);
    cr_assert_eq(after.functions, before.functions);
    cr_assert(!after.complete);
    cr_assert_eq(tracestore_find_run(fixture.store, "latest", &run, NULL), 0);
    cr_assert_eq(run.ended_ns, 99000);
    cr_assert(run.unfinished);
    tracestore_run_release(&run);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT count(*) FROM journal"), 0);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT max(last_ns) FROM segments"), 99000);
    expect_stream(fixture.store, 1, &stream, stream.count);
    expect_stream(fixture.store, 2, &stream, stream.count);
    cr_assert_eq(tracestore_verify(fixture.store, NULL, NULL, NULL, NULL), 0);
    cr_assert_eq(tracestore_recover(fixture.store, &recovered, NULL), 0);
    cr_assert_eq(recovered.runs, 0, "a second time there is nothing to do");
    fixture_close(&fixture);
    stream_release(&stream);
}

/* A function that only returns in the open segment is not in its dictionary, but in segment_functions. */
Test(recover, functions_that_only_return_are_counted)
{
    struct fixture fixture;
    struct thread_writer *thread;
    struct trace_recovered recovered;

    fixture_open(&fixture, &(struct trace_writer_options){.segment_events = 4});
    fixture_functions(&fixture, 2);
    thread = fixture_thread(&fixture, "0.0", TRACE_RETURNS_PROBED);
    for (int i = 0; i < 4; i++)
        thread_writer_call(thread, 1);
    thread_writer_call(thread, 2);
    thread_writer_return(thread);
    thread_writer_return(thread);
    cr_assert_eq(trace_writer_flush(fixture.writer, 5000, NULL), 0);
    run_sql(tracestore_db(fixture.store), "UPDATE runs SET recorder = 'gone 1 1'");
    cr_assert_eq(tracestore_recover(fixture.store, &recovered, NULL), 0);
    cr_assert_eq(recovered.events, 3);
    cr_assert_eq(ask(tracestore_db(fixture.store),
                     "SELECT calls FROM segment_functions WHERE segment_id = 2 AND function_id = 1"),
                 0);
    cr_assert_eq(tracestore_verify(fixture.store, NULL, NULL, NULL, NULL), 0);
    fixture_close(&fixture);
}

Test(recover, a_run_being_recorded_is_left_alone)
{
    struct fixture fixture;
    struct trace_recovered recovered;

    fixture_open(&fixture, NULL);
    cr_assert_eq(tracestore_recover(fixture.store, &recovered, NULL), 0);
    cr_assert_eq(recovered.runs, 0);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT count(*) FROM runs WHERE ended_ns IS NULL"), 1);
    fixture_close(&fixture);
}

Test(recover, what_stands_before_a_damaged_journal_row_is_kept)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct trace_recovered recovered;

    make_killed(&fixture, &stream, 4000);
    open_store(&fixture, fixture.path);
    run_sql(tracestore_db(fixture.store),
            "UPDATE journal SET checksum = checksum + 1 WHERE journal_id = (SELECT max(journal_id) FROM "
            "journal)");
    cr_assert_neq(tracestore_verify(fixture.store, NULL, NULL, NULL, NULL), 0);
    cr_assert_eq(tracestore_recover(fixture.store, &recovered, NULL), 0);
    cr_assert_eq(recovered.damaged_tails, 1);
    cr_assert_gt(recovered.events, 0);
    cr_assert_eq(ask(tracestore_db(fixture.store),
                     "SELECT count(*) FROM losses WHERE cause = 'damaged' AND count IS NULL"),
                 1);
    cr_assert_eq(tracestore_verify(fixture.store, NULL, NULL, NULL, NULL), 0);
    expect_stream(fixture.store, 1, &stream,
                  (size_t)ask(tracestore_db(fixture.store),
                              "SELECT sum(event_count) FROM segments WHERE thread_id = 1"));
    fixture_close(&fixture);
    stream_release(&stream);
}

/* ------------------------------------------------------------------------------------------ salvage */

/* Salvages the fixture's file, which may have been damaged, and opens the new store. */
static struct trace_salvaged salvage(struct fixture *fixture)
{
    struct trace_salvaged salvaged;
    struct error err = {0};
    char path[128];

    tracestore_free(fixture->store);
    fixture->store = NULL;
    snprintf(path, sizeof(path), "%s/new.db", fixture->folder);
    unlink(path);
    cr_assert_eq(tracestore_salvage(fixture->path, path, &salvaged, &err), 0, "%s", err.message);
    open_store(fixture, path);
    cr_assert_eq(tracestore_verify(fixture->store, NULL, NULL, NULL, NULL), 0);
    return salvaged;
}

Test(salvage, a_good_store_is_copied_whole)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct trace_salvaged salvaged;

    make_killed(&fixture, &stream, 4000);
    salvaged = salvage(&fixture);
    cr_assert_eq(salvaged.lost_rows + salvaged.lost_stretches + salvaged.lost_segments +
                     salvaged.lost_events + salvaged.invented,
                 0);
    cr_assert_eq(salvaged.events, 8000);
    cr_assert_eq(salvaged.recovered.runs, 1);
    expect_stream(fixture.store, 1, &stream, stream.count);
    expect_stream(fixture.store, 2, &stream, stream.count);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT count(*) FROM functions"), 13);
    fixture_close(&fixture);
    stream_release(&stream);
}

static struct trace_salvaged damage_and_salvage(struct fixture *fixture, struct stream *stream,
                                                const char *sql)
{
    make_killed(fixture, stream, 4000);
    open_store(fixture, fixture->path);
    run_sql(tracestore_db(fixture->store), sql);
    return salvage(fixture);
}

Test(salvage, damaged_and_missing_segments_are_told_as_losses)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct trace_salvaged salvaged = damage_and_salvage(
        &fixture, &stream,
        "UPDATE segments SET data = x'00' || substr(data, 2) WHERE segment_id = 3;"
        "DELETE FROM segments WHERE segment_id = (SELECT min(segment_id) FROM segments WHERE thread_id = 2)");

    cr_assert_eq(salvaged.lost_segments, 1);
    cr_assert_gt(salvaged.lost_events, 0);
    cr_assert_eq(salvaged.events + salvaged.lost_events, 8000);
    cr_assert_eq(ask(tracestore_db(fixture.store),
                     "SELECT count(*) FROM losses WHERE cause = 'damaged' AND thread_id NOTNULL"),
                 2);
    fixture_close(&fixture);
    stream_release(&stream);
}

/* Events are worth more than the names around them. */
Test(salvage, lost_rows_that_others_need_are_made_up)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct trace_salvaged salvaged = damage_and_salvage(
        &fixture, &stream,
        "PRAGMA foreign_keys = OFF; DELETE FROM runs; DELETE FROM threads; DELETE FROM processes;"
        "DELETE FROM images; DELETE FROM functions WHERE function_id = 5");

    cr_assert_eq(salvaged.runs, 1);
    cr_assert_eq(salvaged.threads, 2);
    cr_assert_gt(salvaged.invented, 5);
    expect_stream(fixture.store, 1, &stream,
                  (size_t)ask(tracestore_db(fixture.store),
                              "SELECT sum(event_count) FROM segments WHERE thread_id = 1"));
    cr_assert_eq(ask(tracestore_db(fixture.store),
                     "SELECT name = 'lost_function_5' FROM functions"
                     " WHERE function_id = 5"),
                 1);
    fixture_close(&fixture);
    stream_release(&stream);
}

Test(salvage, an_existing_file_is_not_overwritten)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct trace_salvaged salvaged;

    make_killed(&fixture, &stream, 1500);
    cr_assert_eq(tracestore_salvage(fixture.path, fixture.path, &salvaged, NULL), -EEXIST);
    fixture_close(&fixture);
    stream_release(&stream);
}

/* A file cut short at any page: what is salvaged verifies, and the more of the file, the more events. */
Test(salvage, a_truncated_file_gives_what_it_has)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct trace_salvaged salvaged;
    struct file file;
    uint64_t most = 0;
    char path[128];

    make_killed(&fixture, &stream, 20000);
    file = read_file(fixture.path);
    snprintf(path, sizeof(path), "%s/new.db", fixture.folder);
    for (size_t keep = 4096; keep <= file.size; keep += 5 * 4096) {
        write_file(fixture.path, file.bytes, keep);
        unlink(path);
        if (tracestore_salvage(fixture.path, path, &salvaged, NULL))
            continue; /* its list of tables is gone */
        salvaged = salvage(&fixture);
        tracestore_free(fixture.store);
        fixture.store = NULL;
        most = salvaged.events > most ? salvaged.events : most;
        cr_assert_leq(salvaged.events + salvaged.lost_events, 40000);
    }
    cr_assert_gt(most, 10000);
    free(file.bytes);
    fixture_close(&fixture);
    stream_release(&stream);
}

/* ------------------------------------------------------------------------------------------ bit flips */

/* Reads all events of all threads; damage may cost some, but nothing else. */
static uint64_t read_everything(struct tracestore *store)
{
    uint64_t events = 0;

    for (int64_t thread = 1; thread <= 2; thread++) {
        struct event_iter *iter;
        struct event event;
        int code, errors = 0;

        if (event_iter_open(store, thread, 0, &iter, NULL))
            continue;
        while ((code = event_iter_next(iter, &event, NULL)) != 1 && errors < 100) {
            errors += code != 0;
            events += code == 0;
            cr_assert_leq(events, 100000, "events without end");
        }
        event_iter_free(iter);
    }
    return events;
}

/* Flips a bit of byte `at` of a segment's payload; `right_checksum`: with a checksum that fits. */
static void flip_segment(sqlite3 *db, int64_t segment, size_t at, uint8_t bit, bool right_checksum)
{
    uint8_t data[4096];
    sqlite3_stmt *row;
    int size;

    cr_assert_eq(sqlite3_prepare_v2(db, "SELECT data FROM segments WHERE segment_id = ?1", -1, &row, NULL),
                 0);
    sqlite3_bind_int64(row, 1, segment);
    cr_assert_eq(sqlite3_step(row), SQLITE_ROW);
    size = sqlite3_column_bytes(row, 0);
    cr_assert_lt(size, (int)sizeof(data));
    memcpy(data, sqlite3_column_blob(row, 0), (size_t)size);
    sqlite3_finalize(row);
    data[at] ^= (uint8_t)(1u << bit);
    cr_assert_eq(sqlite3_prepare_v2(db,
                                    "UPDATE segments SET data = ?2, checksum = coalesce(?3, checksum)"
                                    " WHERE segment_id = ?1",
                                    -1, &row, NULL),
                 0);
    sqlite3_bind_int64(row, 1, segment);
    sqlite3_bind_blob(row, 2, data, size, SQLITE_STATIC);
    if (right_checksum)
        sqlite3_bind_int64(row, 3, (sqlite3_int64)crc32(0, data, (uInt)size));
    cr_assert_eq(sqlite3_step(row), SQLITE_DONE);
    sqlite3_finalize(row);
}

/* Each byte of each segment, one bit: verify sees it, readers lose that segment and no other. With a checksum
 * that fits, the decoders are on their own: they end. */
Test(damage, a_bit_flipped_in_any_byte_of_any_segment_is_found)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct generator generator = {4711};
    int64_t count;
    sqlite3 *db;

    make_killed(&fixture, &stream, 1200);
    open_store(&fixture, fixture.path);
    db = tracestore_db(fixture.store);
    run_sql(db, "PRAGMA synchronous = OFF");
    count = ask(db, "SELECT count(*) FROM segments");
    for (int64_t segment = 1; segment <= count; segment++) {
        char sql[100];
        int64_t size, events;

        snprintf(sql, sizeof(sql), "SELECT length(data) FROM segments WHERE segment_id = %lld",
                 (long long)segment);
        size = ask(db, sql);
        snprintf(sql, sizeof(sql), "SELECT event_count FROM segments WHERE segment_id = %lld",
                 (long long)segment);
        events = ask(db, sql);
        for (size_t at = 0; at < (size_t)size; at++) {
            uint8_t bit = (uint8_t)generator_below(&generator, 8);

            run_sql(db, "SAVEPOINT whole");
            flip_segment(db, segment, at, bit, false);
            cr_assert_eq(read_everything(fixture.store), 2 * stream.count - (uint64_t)events);
            if (at % 16 == 0) {
                run_sql(db, "RELEASE whole"); /* verify wants a transaction of its own */
                cr_assert_geq(tracestore_verify(fixture.store, NULL, NULL, NULL, NULL), 1, "byte %zu", at);
                run_sql(db, "SAVEPOINT whole");
                flip_segment(db, segment, at, bit, false);
                run_sql(db, "RELEASE whole; SAVEPOINT whole");
            }
            flip_segment(db, segment, at, (uint8_t)((bit + 3) % 8), true);
            read_everything(fixture.store);
            run_sql(db, "ROLLBACK TO whole; RELEASE whole");
        }
    }
    cr_assert_eq(tracestore_verify(fixture.store, NULL, NULL, NULL, NULL), 0);
    fixture_close(&fixture);
    stream_release(&stream);
}

/* A bit anywhere in the file: it opens or is refused, every question ends, and what can be salvaged is a good
 * store again. */
Test(damage, a_bit_flipped_anywhere_harms_nothing_else, .timeout = 120)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct generator generator = {815};
    struct file file;
    int opened = 0, found = 0, salvaged_stores = 0;

    make_killed(&fixture, &stream, 3000);
    file = read_file(fixture.path);
    for (int round = 0; round < REPEATS(600); round++) {
        /* Every other one in the first 100 bytes of a page, where its structure is. */
        size_t at = generator_below(&generator, (uint32_t)file.size);
        uint8_t bit = (uint8_t)(1u << generator_below(&generator, 8));
        struct trace_salvaged salvaged;
        char path[128];

        if (round % 2)
            at = at / 4096 * 4096 + at % 100;
        file.bytes[at] ^= bit;
        write_file(fixture.path, file.bytes, file.size);
        if (tracestore_open(fixture.path, TRACESTORE_READ, &fixture.store, NULL) == 0) {
            opened++;
            read_everything(fixture.store);
            found += tracestore_verify(fixture.store, NULL, NULL, NULL, NULL) != 0;
            tracestore_free(fixture.store);
            fixture.store = NULL;
        }
        snprintf(path, sizeof(path), "%s/new.db", fixture.folder);
        unlink(path);
        if (round % 4 == 1 && tracestore_salvage(fixture.path, path, &salvaged, NULL) == 0) {
            salvaged_stores++;
            open_store(&fixture, path);
            cr_assert_eq(tracestore_verify(fixture.store, NULL, NULL, NULL, NULL), 0, "byte %zu, bits %d", at,
                         bit);
            tracestore_free(fixture.store);
            fixture.store = NULL;
        }
        file.bytes[at] ^= bit;
    }
    cr_assert_gt(opened, REPEATS(400));
    cr_assert_gt(found, REPEATS(60));
    cr_assert_gt(salvaged_stores, REPEATS(100));
    free(file.bytes);
    fixture_close(&fixture);
    stream_release(&stream);
}
