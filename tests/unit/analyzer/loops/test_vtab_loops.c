/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table loops: every row is a repetition that the events show; what is decoded for it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyzer/loops/vtab_loops.h"
#include "store/api/tracestore.h"
#include "store/db/sqlite.h"
#include "tests/unit/analyzer/streams.h"

enum { SYMBOLS = 6, MOST = 3000 };

struct fixture {
    char folder[64], path[80];
    struct tracestore *store;
    struct trace_writer *writer;
    sqlite3 *db;
    int64_t process, image;
    uint32_t functions[SYMBOLS];
};

static void begin(struct fixture *fixture)
{
    const struct trace_run_description run = {.name = "loops", .started_ns = 1000};
    const struct trace_writer_options options = {.segment_events = 100};
    const struct trace_process_description process = {.pid = 1, .rank = -1, .started_ns = 1000};
    const struct trace_image_description image = {.path = "program", .kind = "main"};

    *fixture = (struct fixture){.folder = "/tmp/test_vtab_loops.XXXXXX"};
    cr_assert_not_null(mkdtemp(fixture->folder));
    snprintf(fixture->path, sizeof(fixture->path), "%s/store.db", fixture->folder);
    cr_assert_eq(tracestore_open(fixture->path, TRACESTORE_CREATE, &fixture->store, NULL), 0);
    fixture->db = tracestore_db(fixture->store);
    cr_assert_eq(loops_register_vtab(fixture->db), SQLITE_OK);
    cr_assert_eq(trace_writer_begin(fixture->store, &run, &options, &fixture->writer, NULL), 0);
    cr_assert_eq(trace_writer_image(fixture->writer, &image, &fixture->image, NULL), 0);
    cr_assert_eq(trace_writer_process(fixture->writer, &process, &fixture->process, NULL), 0);
    for (uint32_t i = 0; i < SYMBOLS; i++) {
        char name[2] = {(char)('a' + i), 0};
        const struct trace_function_description function = {.name = name, .address = i + 1};

        cr_assert_eq(
            trace_writer_function(fixture->writer, fixture->image, &function, &fixture->functions[i], NULL),
            0);
    }
}

static void end(struct fixture *fixture)
{
    trace_writer_free(fixture->writer);
    tracestore_free(fixture->store);
    unlink(fixture->path);
    rmdir(fixture->folder);
}

static struct thread_writer *add_thread(struct fixture *fixture, const char *label)
{
    const struct trace_thread_description thread = {
        .process_id = fixture->process, .tid = 1, .label = label, .started_ns = 1000};
    struct thread_writer *ret;

    cr_assert_eq(trace_writer_thread(fixture->writer, &thread, &ret, NULL), 0);
    return ret;
}

static void finish(struct fixture *fixture)
{
    cr_assert_eq(trace_writer_end(fixture->writer, 9000, 0, NULL), 0);
}

/* Calls that return at once, one a letter; '?' loses three events. */
static void write_text(struct fixture *fixture, struct thread_writer *thread, const char *text)
{
    for (; *text; text++) {
        if (*text == '?') {
            cr_assert_eq(thread_writer_lost(thread, 5, 3, "test", NULL), 0);
            continue;
        }
        cr_assert_eq(thread_writer_call(thread, fixture->functions[*text - 'a']), 0);
        cr_assert_eq(thread_writer_return(thread), 0);
    }
}

/* All rows, a line each, columns with '|' between them. */
static char *rows(sqlite3 *db, const char *sql)
{
    sqlite3_str *text = sqlite3_str_new(NULL);
    sqlite3_stmt *row;
    int r;

    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
    while ((r = sqlite3_step(row)) == SQLITE_ROW)
        for (int i = 0; i < sqlite3_column_count(row); i++) {
            const char *cell = (const char *)sqlite3_column_text(row, i);

            sqlite3_str_appendf(text, "%s%s", cell ? cell : "",
                                i + 1 < sqlite3_column_count(row) ? "|" : "\n");
        }
    if (r != SQLITE_DONE)
        sqlite3_str_appendf(text, "error: %s", sqlite3_errmsg(db));
    sqlite3_finalize(row);
    sqlite3_str_appendall(text, "");
    return sqlite3_str_finish(text);
}

static void expect(const struct fixture *fixture, const char *sql, const char *expected)
{
    char *got = rows(fixture->db, sql);

    cr_assert_str_eq(got ? got : "", expected, "%s", sql);
    sqlite3_free(got);
}

Test(vtab_loops, rows_of_a_known_stream)
{
    struct fixture fixture;

    begin(&fixture);
    write_text(&fixture, add_thread(&fixture, "0.0"), "abcbcbcdabcbcbcdabcbcbcdf");
    write_text(&fixture, add_thread(&fixture, "0.1"), "eee?ee?eeee");
    finish(&fixture);
    expect(&fixture,
           "SELECT thread_id, level, seq, end_seq, iterations, length, calls, function_id, body FROM loops",
           "1|0|0|46|3|3|24|1|a [b c]^3 d\n"
           "1|1|2|12|3|2|6|2|b c\n"
           "2|0|0|4|3|1|3|5|e\n"
           "2|0|12|18|4|1|4|5|e\n");
    expect(&fixture, "SELECT iterations, body, max_body, min_repeats FROM loops(1, 2) WHERE thread_id = 2",
           "3|e|1|2\n2|e|1|2\n4|e|1|2\n");
    expect(&fixture, "SELECT body FROM loops WHERE max_body = 2 AND level = 0 AND thread_id = 1 LIMIT 1",
           "b c\n");
    expect(&fixture, "SELECT count(*) FROM loops(0)",
           "error: loops: max_body is 1 to 1000, min_repeats 2 to 100");
    expect(&fixture, "SELECT count(*) FROM loops(10, 101)",
           "error: loops: max_body is 1 to 1000, min_repeats 2 to 100");
    end(&fixture);
}

static uint64_t decoded_by(const struct fixture *fixture, const char *sql)
{
    uint64_t before = tracestore_decoded_segments();

    sqlite3_free(rows(fixture->db, sql));
    return tracestore_decoded_segments() - before;
}

Test(vtab_loops, constraints_skip_threads)
{
    static const char half[] =
        "abcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabc"
        "abcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabc";
    struct fixture fixture;
    struct thread_writer *first, *second;

    begin(&fixture);
    first = add_thread(&fixture, "0.0");
    second = add_thread(&fixture, "0.1");
    write_text(&fixture, first, half);
    write_text(&fixture, first, half);
    write_text(&fixture, second, half);
    write_text(&fixture, second, "ddddd");
    finish(&fixture);
    expect(&fixture, "SELECT thread_id, count(*) FROM segments GROUP BY 1", "1|4\n2|3\n");
    cr_assert_eq(decoded_by(&fixture, "SELECT iterations, body FROM loops"), 7);
    cr_assert_eq(decoded_by(&fixture, "SELECT seq FROM loops"), 14);
    cr_assert_eq(decoded_by(&fixture, "SELECT iterations FROM loops WHERE thread_id = 1"), 4);
    cr_assert_eq(decoded_by(&fixture, "SELECT iterations FROM loops WHERE run_id = 2"), 0);
    cr_assert_eq(decoded_by(&fixture, "SELECT iterations FROM loops WHERE function_id = 4"), 3);
    cr_assert_eq(decoded_by(&fixture, "SELECT iterations FROM loops WHERE function_id = 5"), 0);
    expect(&fixture, "SELECT iterations, body FROM loops WHERE function_id = 4", "5|d\n");
    end(&fixture);
}

Test(vtab_loops, the_plan_says_what_is_pushed_down)
{
    struct fixture fixture;
    char *plan;

    begin(&fixture);
    plan =
        rows(fixture.db, "EXPLAIN QUERY PLAN SELECT body FROM loops(5) WHERE run_id = 1 AND function_id = 3");
    cr_assert_not_null(strstr(plan, "loops VIRTUAL TABLE INDEX 2:run_id=? function_id=?"), "%s", plan);
    sqlite3_free(plan);
    plan =
        rows(fixture.db, "EXPLAIN QUERY PLAN SELECT seq FROM loops WHERE thread_id = 1 AND iterations > 3");
    cr_assert_not_null(strstr(plan, "loops VIRTUAL TABLE INDEX 1:thread_id=?"), "%s", plan);
    sqlite3_free(plan);
    end(&fixture);
}

/* ------------------------------------------------------------------------------------------ random streams
 */

/* Fails unless the calls from `seq` to `end_seq` are `iterations` times the same. */
static void expect_repetition(const uint32_t *stream, sqlite3_stmt *row)
{
    /* Each call is followed by its return: call i has seq 2 i. */
    int64_t first = sqlite3_column_int64(row, 1) / 2, last = sqlite3_column_int64(row, 2) / 2;
    int64_t iterations = sqlite3_column_int64(row, 3), calls = sqlite3_column_int64(row, 4);
    int64_t period = calls / iterations;

    cr_assert_eq(calls, last - first + 1);
    cr_assert_eq(period * iterations, calls);
    for (int64_t i = first; i + period <= last; i++)
        cr_assert_eq(stream[i], stream[i + period]);
    cr_assert_eq(stream[first], (uint32_t)sqlite3_column_int64(row, 5) - 1);
}

/* Outer loops follow each other, inner ones lie in the loop before them. */
static void expect_rows(const struct fixture *fixture, int64_t thread, const uint32_t *stream, int64_t *found)
{
    sqlite3_stmt *row;
    int64_t ends[64] = {-1};

    cr_assert_eq(sqlite3_prepare_v2(fixture->db,
                                    "SELECT level, seq, end_seq, iterations, calls, function_id FROM loops"
                                    " WHERE thread_id = ?1",
                                    -1, &row, NULL),
                 SQLITE_OK);
    sqlite3_bind_int64(row, 1, thread);
    while (sqlite3_step(row) == SQLITE_ROW) {
        int64_t level = sqlite3_column_int64(row, 0), seq = sqlite3_column_int64(row, 1);
        int64_t end_seq = sqlite3_column_int64(row, 2);

        expect_repetition(stream, row);
        cr_assert(level >= 0 && level < 63);
        cr_assert_gt(seq, ends[level]);
        cr_assert(level == 0 || end_seq <= ends[level - 1]);
        ends[level] = end_seq;
        ends[level + 1] = seq - 1;
        ++*found;
    }
    sqlite3_finalize(row);
}

/* As many outer loops as the recogniser finds by itself. */
static void expect_count(const struct fixture *fixture, int64_t thread, const uint32_t *stream, size_t count)
{
    struct loop_table table = {0};
    struct nlr_sequence sequence = reduce(&table, NLR_DEFAULT_BODY, NLR_STRICT_REPEATS, stream, count);
    size_t loops = 0;
    char sql[100], expected[30];

    for (size_t i = 0; i < sequence.count; i++)
        loops += sequence.elements[i].kind == NLR_LOOP;
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM loops WHERE thread_id = %lld AND level = 0",
             (long long)thread);
    snprintf(expected, sizeof(expected), "%zu\n", loops);
    expect(fixture, sql, expected);
    free(sequence.elements);
    loop_table_release(&table);
}

Test(vtab_loops, random_streams)
{
    enum { THREADS = 40 };
    static uint32_t streams[THREADS][MOST];
    struct fixture fixture;
    size_t counts[THREADS];
    uint64_t seed = 5;
    int64_t found = 0;

    begin(&fixture);
    for (size_t i = 0; i < THREADS; i++) {
        struct thread_writer *thread = add_thread(&fixture, "0.0");

        counts[i] = random_stream(&seed, SYMBOLS, MOST, streams[i]);
        for (size_t at = 0; at < counts[i]; at++) {
            cr_assert_eq(thread_writer_call(thread, fixture.functions[streams[i][at] % SYMBOLS]), 0);
            cr_assert_eq(thread_writer_return(thread), 0);
            streams[i][at] %= SYMBOLS;
        }
    }
    finish(&fixture);
    for (size_t i = 0; i < THREADS; i++) {
        expect_rows(&fixture, (int64_t)i + 1, streams[i], &found);
        expect_count(&fixture, (int64_t)i + 1, streams[i], counts[i]);
    }
    cr_assert_gt(found, 500);
    end(&fixture);
}
