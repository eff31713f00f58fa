/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The virtual tables against what a naive program expects of them (model.h). */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "store/segment/event_iter.h"
#include "tests/unit/repeats.h"
#include "tests/unit/store/model.h"

static const struct model_options usual = {.seed = 1,
                                           .runs = 2,
                                           .threads = 3,
                                           .events = 900,
                                           .segment_events = 70,
                                           .lost_percent = 2,
                                           .times = true};

/* The same query over the virtual table and over the ordinary one; `sql` has one %s for "" or "x_". */
static size_t compare(struct model *model, const char *sql)
{
    char *ours = sqlite3_mprintf(sql, ""), *naive = sqlite3_mprintf(sql, "x_");
    char *got = model_rows(model, ours), *expected = model_rows(model, naive);
    size_t size = strlen(expected);

    cr_assert_str_eq(got, expected, "%s", ours);
    cr_assert(strncmp(expected, "error", 5) != 0, "%s: %s", ours, expected);
    free(got);
    free(expected);
    sqlite3_free(ours);
    sqlite3_free(naive);
    return size;
}

static void compare_all(const struct model_options *options)
{
    struct model model;

    model_init(&model, options);
    cr_assert_gt(compare(&model, "SELECT * FROM %sevents ORDER BY run_id, thread_id, seq"), 0);
    cr_assert_gt(compare(&model, "SELECT * FROM %scalls ORDER BY run_id, thread_id, seq"), 0);
    model_release(&model);
}

Test(vtab, whole_streams)
{
    struct model_options options = usual;

    for (options.seed = 1; options.seed < 12; options.seed++) {
        options.unfinished = options.seed % 2;
        options.lost_percent = options.seed % 3;
        options.segment_events = options.seed % 4 ? 20 * options.seed : 0;
        options.times = options.seed % 5;
        compare_all(&options);
    }
}

/* ----------------------------------------------------------------------------------------- random queries */

/* Bounds that are no integers, or not between the numbers there are: the table has to know what SQLite makes
 * of them. */
static void add_odd_term(struct model *model, char *sql, size_t size, const char *compare_by)
{
    static const char *const columns[] = {"run_id", "thread_id", "seq", "ns", "function_id"};
    static const char *const bounds[] = {"NULL",
                                         "'x'",
                                         "''",
                                         "x'31'",
                                         "'100'",
                                         "' 2.0'",
                                         "'100.5'",
                                         "2.0",
                                         "100.0",
                                         "1050000.0",
                                         "-0.5",
                                         "0",
                                         "-1",
                                         "1e300",
                                         "-1e300",
                                         "9.3e18",
                                         "-9.3e18",
                                         "9223372036854775807",
                                         "-9223372036854775807 - 1",
                                         "(SELECT 2)"};

    snprintf(sql, size, " AND %s %s %s", columns[model_random(model, ARRAY_SIZE(columns))], compare_by,
             bounds[model_random(model, ARRAY_SIZE(bounds))]);
}

static void add_term(struct model *model, char *sql, size_t size, bool calls)
{
    static const char *const compares[] = {"=", "<", "<=", ">", ">=", "<>"};
    const char *compare_by = compares[model_random(model, 6)];
    size_t at = strlen(sql);

    switch (model_random(model, 12)) {
    case 0:
        snprintf(sql + at, size - at, " AND run_id = %u", model_random(model, 4));
        break;
    case 1:
        snprintf(sql + at, size - at, " AND thread_id = %u", 1 + model_random(model, 7));
        break;
    case 2:
        snprintf(sql + at, size - at, " AND thread_id IN (2, %u, 1)", 1 + model_random(model, 7));
        break;
    case 3:
        snprintf(sql + at, size - at, " AND seq %s %d%s", compare_by, (int)model_random(model, 950) - 10,
                 model_random(model, 5) ? "" : ".5");
        break;
    case 4:
        snprintf(sql + at, size - at, " AND function_id %s %u", compare_by, model_random(model, 14));
        break;
    case 5:
        snprintf(sql + at, size - at, " AND ns %s %u", compare_by, 1000000 + model_random(model, 150000));
        break;
    case 6:
        if (calls)
            snprintf(sql + at, size - at, " AND state %s '%s'", model_random(model, 2) ? "=" : "<>",
                     (const char *[]){"returned", "open", "unknown", "none"}[model_random(model, 4)]);
        else
            snprintf(sql + at, size - at, " AND kind %s '%s'", model_random(model, 4) ? "=" : "<>",
                     (const char *[]){"call", "return", "lost", "none"}[model_random(model, 4)]);
        break;
    case 7:
        snprintf(sql + at, size - at, " AND call_site %s %u", compare_by, 1 + model_random(model, 24));
        break;
    case 8:
        snprintf(sql + at, size - at, " AND assumed %s 1", compare_by);
        break;
    case 9:
        snprintf(sql + at, size - at, " AND function_id IN (%u, NULL, '%u', 'x', 2.5, %u, -1)",
                 model_random(model, 14), model_random(model, 14), model_random(model, 14));
        break;
    case 10:
        add_odd_term(model, sql + at, size - at, compare_by);
        break;
    default:
        snprintf(sql + at, size - at, " AND depth %s %u", compare_by, model_random(model, 12));
        break;
    }
}

static void random_queries(const struct model_options *options, int count)
{
    static const char *const columns[] = {"*", "count(*)", "seq, function_id", "max(seq), min(depth)"};
    struct model model;
    size_t found = 0;

    model_init(&model, options);
    for (int i = 0; i < count; i++) {
        bool calls = model_random(&model, 2);
        char sql[600];

        snprintf(sql, sizeof(sql), "SELECT %s FROM %%s%s WHERE 1", columns[model_random(&model, 4)],
                 calls ? "calls" : "events");
        for (int terms = (int)model_random(&model, 5); terms >= 0; terms--)
            add_term(&model, sql, sizeof(sql), calls);
        strcat(sql, " ORDER BY run_id, thread_id, seq");
        found += compare(&model, sql) > 20;
    }
    cr_assert_gt(found, count / 20, "the queries hardly ever find a row");
    model_release(&model);
}

Test(vtab, random_queries, .timeout = 300)
{
    struct model_options options = usual;

    for (options.seed = 100; options.seed < 106; options.seed++) {
        options.unfinished = options.seed % 2;
        options.lost_percent = (int)options.seed % 3;
        options.times = options.seed != 103;
        random_queries(&options, REPEATS(500));
    }
}

/* As the right side of joins, with constraints that come from another table's row. */
/* Where ranges begin: 0 is no time, the first seq, and no id. */
Test(vtab, bounds_at_zero)
{
    static const char *const columns[] = {"run_id", "thread_id", "seq", "ns", "function_id"};
    static const char *const bounds[] = {"= 0",  "<= 0", "< 1", "< 0",
                                         ">= 0", "> 0",  "= 1", "BETWEEN 0 AND 0"};
    static const char *const tables[] = {"events", "calls"};
    struct model_options options = usual;
    struct model model;

    for (int times = 0; times < 2; times++) {
        options.times = times;
        model_init(&model, &options);
        for (size_t i = 0; i < ARRAY_SIZE(columns) * ARRAY_SIZE(bounds) * ARRAY_SIZE(tables); i++) {
            char sql[160];

            snprintf(sql, sizeof(sql), "SELECT * FROM %%s%s WHERE %s %s ORDER BY run_id, thread_id, seq",
                     tables[i % 2], columns[i / 2 % ARRAY_SIZE(columns)],
                     bounds[i / 2 / ARRAY_SIZE(columns)]);
            compare(&model, sql);
        }
        model_release(&model);
    }
}

Test(vtab, joins)
{
    struct model model;

    model_init(&model, &usual);
    compare(&model,
            "SELECT t.label, count(*), max(e.depth) FROM threads t JOIN %sevents e USING (thread_id) "
            "GROUP BY t.thread_id ORDER BY t.thread_id");
    compare(&model,
            "SELECT c.seq, p.function_id FROM %scalls c JOIN x_calls p ON p.thread_id = c.thread_id "
            "AND p.seq = c.parent_seq WHERE c.thread_id = 2 ORDER BY c.seq");
    compare(&model,
            "SELECT t.thread_id, (SELECT max(seq) FROM %sevents e WHERE e.thread_id = t.thread_id "
            "AND e.seq < 100) FROM threads t ORDER BY 1");
    model_release(&model);
}

/* ------------------------------------------------------------------------------------ how much is decoded */

static uint64_t decoded_by(struct model *model, const char *sql)
{
    uint64_t before = tracestore_decoded_segments();

    free(model_rows(model, sql));
    return tracestore_decoded_segments() - before;
}

Test(vtab, constraints_skip_segments)
{
    struct model_options options = usual;
    struct model model;
    uint64_t all;

    options.times = true;
    model_init(&model, &options);
    all = (uint64_t)model_number(&model, "SELECT count(*) FROM segments");
    cr_assert_gt(all, 60);
    cr_assert_eq(decoded_by(&model, "SELECT count(*) FROM events"), all);
    cr_assert_eq(decoded_by(&model, "SELECT count(*) FROM events WHERE thread_id = 1"),
                 (uint64_t)model_number(&model, "SELECT count(*) FROM segments WHERE thread_id = 1"));
    cr_assert_eq(decoded_by(&model, "SELECT count(*) FROM events WHERE run_id = 2"),
                 (uint64_t)model_number(&model, "SELECT count(*) FROM segments WHERE run_id = 2"));
    cr_assert_eq(
        decoded_by(&model, "SELECT count(*) FROM events WHERE thread_id = 1 AND seq BETWEEN 200 AND 202"),
        (uint64_t)model_number(&model,
                               "SELECT count(*) FROM segments WHERE thread_id = 1 "
                               "AND first_seq <= 202 AND first_seq + event_count > 200"));
    cr_assert_leq(decoded_by(&model, "SELECT count(*) FROM events WHERE ns BETWEEN 1001000 AND 1001100"), 12);
    cr_assert_eq(decoded_by(&model, "SELECT count(*) FROM events WHERE run_id = 77"), 0);
    cr_assert_eq(decoded_by(&model, "SELECT count(*) FROM events WHERE seq < 0"), 0);
    cr_assert_eq(decoded_by(&model, "SELECT count(*) FROM events WHERE kind = 'lost'"),
                 (uint64_t)model_number(&model,
                                        "SELECT count(DISTINCT s.segment_id) FROM segments s JOIN losses l "
                                        "ON l.thread_id = s.thread_id AND l.seq >= s.first_seq "
                                        "AND l.seq < s.first_seq + s.event_count"));
    cr_assert_leq(decoded_by(&model, "SELECT * FROM open_calls"), 6);
    cr_assert_leq(
        decoded_by(&model, "SELECT * FROM calls WHERE thread_id = 1 AND seq = 100 AND state = 'returned'"),
        (uint64_t)model_number(&model,
                               "SELECT count(*) FROM segments WHERE thread_id = 1 "
                               "AND first_seq + event_count > 100"));
    model_release(&model);
}

/* A time whose calls have all returned: what comes behind the last of these returns is not decoded, but for
 * the segment in which the time is seen to be over, and before it only one that ends at that time. */
Test(vtab, calls_of_a_time_end_with_it)
{
    static const char of_time[] =
        "WITH time AS (SELECT ns, min(seq) AS first, max(end_seq) AS last FROM calls WHERE thread_id = 2 "
        "AND ns NOT NULL GROUP BY ns HAVING count(*) = count(end_seq) ORDER BY last - first LIMIT 1) ";
    struct model_options options = usual;
    struct model model;
    char sql[600];
    int64_t between, behind;

    options.segment_events = 10;
    model_init(&model, &options);
    snprintf(sql, sizeof(sql),
             "%s SELECT count(*) FROM segments, time WHERE thread_id = 2 AND first_seq <= last "
             "AND first_seq + event_count > first",
             of_time);
    between = model_number(&model, sql);
    snprintf(sql, sizeof(sql),
             "%s SELECT count(*) FROM segments, time WHERE thread_id = 2 AND first_seq > last", of_time);
    behind = model_number(&model, sql);
    cr_assert_gt(behind, 4);
    snprintf(sql, sizeof(sql), "%s SELECT ns FROM time", of_time);
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM calls WHERE thread_id = 2 AND ns = %lld",
             (long long)model_number(&model, sql));
    cr_assert_leq(decoded_by(&model, sql), (uint64_t)between + 2);
    cr_assert_gt(model_number(&model, sql), 0);
    model_release(&model);
}

/* Functions that only some segments have: 10 and 11 of the model come late. */
Test(vtab, function_skips_segments)
{
    struct model_options options = usual;
    struct model model;
    char sql[200];
    int64_t segments;

    options.segment_events = 8;
    model_init(&model, &options);
    snprintf(sql, sizeof(sql),
             "SELECT count(DISTINCT segment_id) FROM segment_functions WHERE function_id = %u",
             model.functions[11]);
    segments = model_number(&model, sql);
    cr_assert_lt(segments, model_number(&model, "SELECT count(*) FROM segments") * 3 / 4);
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM events WHERE function_id = %u", model.functions[11]);
    cr_assert_eq(decoded_by(&model, sql), (uint64_t)segments);
    snprintf(sql, sizeof(sql), "SELECT seq, state FROM calls WHERE function_id = %u", model.functions[11]);
    cr_assert_eq(decoded_by(&model, sql), (uint64_t)segments);
    snprintf(sql, sizeof(sql), "SELECT duration_ns FROM calls WHERE function_id = %u", model.functions[11]);
    cr_assert_gt(decoded_by(&model, sql), (uint64_t)segments, "how exact it is takes all events");
    snprintf(sql, sizeof(sql), "SELECT * FROM events WHERE function_id IN (%u, 999, %u)", model.functions[11],
             model.functions[11]);
    cr_assert_eq(decoded_by(&model, sql), (uint64_t)segments);
    model_release(&model);
}

Test(vtab, plan_says_what_is_pushed_down)
{
    struct model model;
    char *plan;

    model_init(&model, &usual);
    plan =
        model_rows(&model,
                   "EXPLAIN QUERY PLAN SELECT * FROM events WHERE thread_id = 1 AND seq >= 5 AND depth = 1 "
                   "ORDER BY seq");
    cr_assert(strstr(plan, "thread_id=? seq>=?"), "%s", plan);
    cr_assert_not(strstr(plan, "TEMP B-TREE"), "%s", plan);
    free(plan);
    plan = model_rows(&model,
                      "EXPLAIN QUERY PLAN SELECT sum(calls) FROM segment_functions WHERE function_id = 3 "
                      "AND segment_id = 2");
    cr_assert(strstr(plan, "segment_id=? function_id=?"), "%s", plan);
    free(plan);
    plan = model_rows(&model,
                      "EXPLAIN QUERY PLAN SELECT name, calls FROM call_counts WHERE run_id = 1 "
                      "AND function_id IN (SELECT function_id FROM function_names('main'))");
    cr_assert(strstr(plan, "SCAN c VIRTUAL TABLE INDEX 0:run_id=? function_id=(?)"), "%s", plan);
    free(plan);
    plan = model_rows(&model, "EXPLAIN QUERY PLAN SELECT * FROM events WHERE function_id IN (1, 2, 3)");
    cr_assert(strstr(plan, "function_id=(?)"), "%s", plan);
    free(plan);
    model_release(&model);
}

/* ------------------------------------------------------------------------------------------ views */

static void compare_rows(struct model *model, const char *ours, const char *naive)
{
    char *got = model_rows(model, ours), *expected = model_rows(model, naive);

    cr_assert_str_eq(got, expected, "%s", ours);
    cr_assert_gt(strlen(expected), 10);
    free(got);
    free(expected);
}

Test(vtab, views)
{
    struct model_options options = usual;

    for (int kind = 0; kind < 2; kind++) {
        struct model model;

        options.unfinished = kind;
        model_init(&model, &options);
        compare_rows(
            &model,
            "SELECT run_id, thread, thread_id, function_id, name, sum(calls) FROM call_counts "
            "GROUP BY 1, 3, 4 ORDER BY 1, 3, 4",
            "SELECT e.run_id, t.label, e.thread_id, e.function_id, coalesce(demangled, f.name), count(*) "
            "FROM x_events e JOIN threads t USING (thread_id) JOIN functions f USING (function_id) "
            "WHERE kind = 'call' GROUP BY e.run_id, e.thread_id, e.function_id ORDER BY 1, 3, 4");
        compare_rows(&model, "SELECT name, sum(calls) FROM call_counts GROUP BY name",
                     "SELECT coalesce(demangled, name) AS n, count(*) FROM x_events JOIN functions USING "
                     "(function_id) "
                     "WHERE kind = 'call' GROUP BY n");
        compare_rows(
            &model, "SELECT run_id, caller, callee, calls FROM call_graph ORDER BY 1, 2, 3",
            "SELECT c.run_id, coalesce(g.demangled, g.name), coalesce(f.demangled, f.name), count(*) "
            "FROM x_calls c LEFT JOIN x_calls p ON p.thread_id = c.thread_id AND p.seq = c.parent_seq "
            "LEFT JOIN functions f ON f.function_id = c.function_id "
            "LEFT JOIN functions g ON g.function_id = p.function_id GROUP BY 1, 2, 3 ORDER BY 1, 2, 3");
        compare_rows(&model, "SELECT run_id, thread, depth, name, state FROM open_calls",
                     "SELECT c.run_id, t.label, c.depth, coalesce(demangled, f.name), state FROM x_calls c "
                     "JOIN threads t USING (thread_id) JOIN functions f USING (function_id) "
                     "WHERE state <> 'returned' AND returns <> 'none' ORDER BY 1, 2, 3");
        compare_rows(&model, "SELECT * FROM function_calls ORDER BY run_id, thread_id, function_id",
                     "SELECT run_id, thread_id, function_id, count(*) FROM x_events WHERE kind = 'call' "
                     "GROUP BY thread_id, function_id ORDER BY 1, 2, 3");
        compare_rows(&model, "SELECT * FROM function_calls WHERE run_id = 2 AND function_id = 3",
                     "SELECT run_id, thread_id, function_id, count(*) FROM x_events WHERE kind = 'call' "
                     "AND run_id = 2 AND function_id = 3 GROUP BY thread_id");
        compare_rows(
            &model,
            "SELECT segment_id, function_id, calls FROM segment_functions WHERE segment_id < 40 ORDER BY 1, "
            "2",
            "SELECT segment_id, coalesce(function_id, 4294967295) AS f, sum(kind = 'call') FROM segments s "
            "JOIN x_events e ON e.thread_id = s.thread_id AND e.seq >= s.first_seq "
            "AND e.seq < s.first_seq + s.event_count WHERE segment_id < 40 GROUP BY 1, f ORDER BY 1, f");
        cr_assert_leq(decoded_by(&model, "SELECT name, sum(calls) FROM call_counts GROUP BY name"), 0);
        model_release(&model);
    }
}

/* ------------------------------------------------------------------------------------------ damage */

Test(vtab, damaged_segment_is_an_error)
{
    struct model model;
    sqlite3 *db;
    char *rows;

    model_init(&model, &usual);
    cr_assert_eq(sqlite3_open(model.path, &db), SQLITE_OK);
    cr_assert_eq(
        sqlite3_exec(
            db,
            "UPDATE segments SET data = zeroblob(length(data)) WHERE segment_id = "
            "(SELECT segment_id FROM segments WHERE thread_id = 1 ORDER BY first_seq LIMIT 1 OFFSET 1)",
            NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(db);
    rows = model_rows(&model, "SELECT count(*) FROM events WHERE thread_id = 1");
    cr_assert(strstr(rows, "error:") && strstr(rows, "damaged"), "%s", rows);
    free(rows);
    cr_assert_gt(model_number(&model, "SELECT count(*) FROM events WHERE thread_id = 2"), 0);
    cr_assert_gt(model_number(&model, "SELECT count(*) FROM events WHERE thread_id = 1 AND seq > 200"), 0);
    model_release(&model);
}

/* Call sites cost nothing where nobody looks at them: the plan says which query does. */
Test(vtab, sites_are_decoded_only_when_used)
{
    static const struct {
        const char *columns, *rest;
        bool used;
    } queries[] = {
        {"count(*)", "", false},
        {"seq, t.function_id", "", false},
        {"call_site", "", true},
        {"seq", "WHERE call_site = 3", true},
        {"count(*)", "JOIN call_sites s ON s.site_id = t.call_site", true},
    };
    struct model model;

    model_init(&model, &usual);
    for (size_t i = 0; i < 2 * sizeof(queries) / sizeof(queries[0]); i++) {
        char sql[240], expected[40], *plan;

        snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN SELECT %s FROM %s t %s", queries[i / 2].columns,
                 i % 2 ? "events" : "calls", queries[i / 2].rest);
        snprintf(expected, sizeof(expected), "VIRTUAL TABLE INDEX %d:", queries[i / 2].used);
        plan = model_rows(&model, sql);
        cr_assert_not_null(strstr(plan, expected), "%s: %s", sql, plan);
        free(plan);
    }
    model_release(&model);
}

/* A reader that does without sites gets everything else. */
Test(vtab, events_without_their_sites)
{
    const struct event_range range = {.last_seq = UINT64_MAX, .no_sites = true};
    struct event_iter *with, *without;
    struct event full, bare;
    struct model model;
    size_t sites = 0;

    model_init(&model, &usual);
    for (int64_t thread = 1; thread <= 6; thread++) {
        cr_assert_eq(event_iter_open(model.store, thread, 0, &with, NULL), 0);
        cr_assert_eq(event_iter_open_db(model.db, thread, &range, &without, NULL), 0);
        while (event_iter_next(with, &full, NULL) == 0) {
            cr_assert_eq(event_iter_next(without, &bare, NULL), 0);
            cr_assert_eq(bare.call_site, 0);
            cr_assert(bare.seq == full.seq && bare.function == full.function && bare.kind == full.kind &&
                      bare.depth == full.depth && bare.ns == full.ns && bare.assumed == full.assumed);
            sites += full.call_site != 0;
        }
        cr_assert_eq(event_iter_next(without, &bare, NULL), 1);
        event_iter_free(with);
        event_iter_free(without);
    }
    cr_assert_gt(sites, 0);
    model_release(&model);
}
