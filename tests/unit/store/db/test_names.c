/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* function_names: what it finds is what SQLite finds in the catalog, by way of the index. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "store/db/name_index.h"
#include "tests/unit/store/fixture.h"

static void add_function(struct fixture *fixture, const char *name, const char *demangled, uint64_t address)
{
    const struct trace_function_description function = {
        .name = name, .demangled = demangled, .address = address, .size = 1};
    uint32_t id;

    cr_assert_eq(trace_writer_function(fixture->writer, fixture->image_id, &function, &id, NULL), 0);
}

/* Ends the run, has its few functions in the index, and goes on reading only. */
static void end_run(struct fixture *fixture)
{
    cr_assert_eq(trace_writer_end(fixture->writer, 100, 0, NULL), 0);
    trace_writer_free(fixture->writer);
    fixture->writer = NULL;
    cr_assert_eq(name_index_build(tracestore_db(fixture->store), NULL), 0);
}

static void fill(struct fixture *fixture)
{
    static const char *const names[][2] = {
        {"malloc", NULL},
        {"zmalloc_usable", NULL},
        {"_ZN3foo6VectorIiE9push_backEi", "foo::Vector<int>::push_back(int)"},
        {"_ZN3foo6VectorIdE8pop_backEv", "foo::Vector<double>::pop_back()"},
        {"operator\"\"_km", NULL},
        {"100%_sure", NULL},
        {"\xc3\x89t\xc3\xa9_update", NULL},
        {"ab", NULL},
        {"set[x]y*z", NULL},
        {"MallocExtension", NULL},
    };
    static const char letters[] = "aAbB_x";
    struct generator random = {7};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        add_function(fixture, names[i][0], names[i][1], 16 * i);
    for (int i = 0; i < 400; i++) {
        char name[12];
        size_t length = 1 + generator_below(&random, 10);

        for (size_t at = 0; at < length; at++)
            name[at] = letters[generator_below(&random, sizeof(letters) - 1)];
        name[length] = '\0';
        add_function(fixture, name, i % 3 ? NULL : names[i % 10][0], 4096 + 16 * (uint64_t)i);
    }
}

/* The number of functions that `condition` holds for, in function_names and in the catalog. */
static int64_t same_rows(sqlite3 *db, const char *ours, const char *naive)
{
    char sql[700];
    int64_t count;

    snprintf(sql, sizeof(sql), "SELECT count(*) FROM function_names WHERE %s", ours);
    count = ask(db, sql);
    snprintf(sql, sizeof(sql),
             "SELECT count(*) = %lld AND total(function_id) = (SELECT total(function_id) FROM function_names"
             " WHERE %s) FROM (SELECT function_id, name, coalesce(demangled, name) AS demangled"
             " FROM functions) WHERE %s",
             (long long)count, ours, naive);
    cr_assert_eq(ask(db, sql), 1, "%s", ours);
    return count;
}

static void compare_all(sqlite3 *db)
{
    static const char *const conditions[] = {
        "name LIKE '%malloc%'",
        "name LIKE 'malloc'",
        "demangled LIKE '%push_back(int%'",
        "demangled LIKE '%Vector<%>::p%'",
        "name LIKE '%vector%' AND demangled LIKE '%double%'",
        "name LIKE '%\"\"_km'",
        "name LIKE '100%!_sure' ESCAPE '!'",
        "name LIKE '%100\x25%'",
        "name LIKE '%update'",
        "name LIKE '%\xc3\xa9_up%'",
        "name LIKE 'ab'",
        "name LIKE '__'",
        "name LIKE '%'",
        "name LIKE NULL",
        "name LIKE '%no such name%'",
        "name GLOB 'set[[]x]y*'",
        "name GLOB '*[]a-c]alloc*'",
        "name GLOB 'z*[^x]_us?ble'",
        "name = 'malloc'",
        "name = 'MALLOC' COLLATE NOCASE",
        "name = 'ab' AND demangled LIKE 'a%'",
        "name = NULL",
        "name = 'malloc' AND function_id = 1",
        "demangled = 'foo::Vector<double>::pop_back()'",
        "function_id = 3",
        "function_id = 3 AND name LIKE '%push%'",
        "name LIKE '%xxx%' OR demangled LIKE '%malloc%'",
    };
    int64_t found = 0;

    for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++)
        found += same_rows(db, conditions[i], conditions[i]) > 0;
    cr_assert_gt(found, 15);
    cr_assert_gt(
        same_rows(db, "function_names MATCH 'malloc'", "name LIKE '%malloc%' OR demangled LIKE '%malloc%'"),
        2);
    cr_assert_gt(same_rows(db, "function_names MATCH ' VECTOR  push_b '",
                           "demangled LIKE '%vector%' AND demangled LIKE '%push!_b%' ESCAPE '!'"),
                 0);
    cr_assert_gt(same_rows(db, "function_names MATCH 'xx a'",
                           "(name LIKE '%xx%' OR demangled LIKE '%xx%') AND (name LIKE '%a%' OR demangled "
                           "LIKE '%a%')"),
                 0);
}

static void compare_random(sqlite3 *db)
{
    static const char letters[] = "aAbB_x%_?*";
    struct generator random = {11};
    int64_t found = 0;

    for (int i = 0; i < 600; i++) {
        char condition[64], pattern[10];
        size_t length = 3 + generator_below(&random, 6);

        for (size_t at = 0; at < length; at++)
            pattern[at] = letters[generator_below(&random, sizeof(letters) - 1)];
        pattern[length] = '\0';
        snprintf(condition, sizeof(condition), i % 2 ? "name LIKE '%%%s%%'" : "name GLOB '*%s*'", pattern);
        found += same_rows(db, condition, condition) > 0;
    }
    cr_assert_gt(found, 100);
}

Test(names, are_found_while_recorded_and_when_indexed)
{
    struct fixture fixture;
    sqlite3 *db;

    fixture_open(&fixture, NULL);
    db = tracestore_db(fixture.store);
    fill(&fixture);
    cr_assert_eq(trace_writer_flush(fixture.writer, 50, NULL), 0);
    cr_assert_eq(ask(db, "SELECT up_to FROM indexed_functions"), 0);
    compare_all(db);
    end_run(&fixture);
    cr_assert_eq(ask(db, "SELECT up_to = (SELECT max(function_id) FROM functions) FROM indexed_functions"),
                 1);
    compare_all(db);
    compare_random(db);
    cr_assert_eq(tracestore_verify(fixture.store, NULL, NULL, NULL, NULL), 0);
    fixture_close(&fixture);
}

Test(names, the_plan_names_the_pattern)
{
    static const char *const plans[][2] = {
        {"name LIKE '%malloc%'", "function_names VIRTUAL TABLE INDEX 0:name LIKE ?"},
        {"demangled GLOB '*malloc*'", "function_names VIRTUAL TABLE INDEX 0:demangled GLOB ?"},
        {"function_names MATCH 'malloc'", "function_names VIRTUAL TABLE INDEX 0:MATCH ?"},
        {"name = 'malloc'", "function_names VIRTUAL TABLE INDEX 0:name=?"},
        {"name = 'malloc' COLLATE NOCASE", "function_names VIRTUAL TABLE INDEX 0:name =?"},
    };
    struct fixture fixture;

    fixture_open(&fixture, NULL);
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        char sql[200];
        sqlite3_stmt *row;

        snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN SELECT * FROM function_names WHERE %s", plans[i][0]);
        cr_assert_eq(sqlite3_prepare_v2(tracestore_db(fixture.store), sql, -1, &row, NULL), SQLITE_OK);
        cr_assert_eq(sqlite3_step(row), SQLITE_ROW);
        cr_assert_not_null(strstr((const char *)sqlite3_column_text(row, 3), plans[i][1]));
        sqlite3_finalize(row);
    }
    fixture_close(&fixture);
}

/* A store with one run that has ended, so that its names are indexed. */
static sqlite3 *open_indexed(struct fixture *fixture)
{
    fixture_open(fixture, NULL);
    fill(fixture);
    end_run(fixture);
    return tracestore_db(fixture->store);
}

/* What is not in the index is not found by a pattern of three characters, and is by one of two. */
Test(names, patterns_look_into_the_index_alone)
{
    struct fixture fixture;
    sqlite3 *db = open_indexed(&fixture);

    run_sql(db,
            "INSERT INTO function_trigrams(function_trigrams, rowid, name, demangled)"
            " SELECT 'delete', function_id, name, demangled FROM functions WHERE name = 'malloc'");
    cr_assert_eq(ask(db, "SELECT count(*) FROM function_names WHERE name LIKE 'malloc'"), 0);
    cr_assert_eq(ask(db,
                     "SELECT count(*) FROM function_names WHERE function_names MATCH 'malloc'"
                     " AND name LIKE 'malloc'"),
                 0);
    cr_assert_eq(ask(db, "SELECT count(*) FROM function_names WHERE name = 'malloc'"), 1, "by its hash");
    cr_assert_eq(ask(db, "SELECT count(*) FROM function_names WHERE name LIKE 'ma%' AND name NOT LIKE 'M%n'"),
                 1);
    fixture_close(&fixture);
}

Test(names, deleted_functions_leave_the_index)
{
    struct fixture fixture;
    sqlite3 *db = open_indexed(&fixture);

    cr_assert_eq(tracestore_delete_run(fixture.store, 1, NULL), 0);
    cr_assert_eq(ask(db, "SELECT count(*) FROM functions"), 0);
    cr_assert_eq(ask(db, "SELECT up_to FROM indexed_functions"), 0);
    cr_assert_eq(ask(db, "SELECT count(*) FROM function_trigrams('mal OR loc OR vec')"), 0);
    fixture_close(&fixture);
}

/* So many that an index of them is worth its bytes. */
static void fill_more(struct fixture *fixture)
{
    for (int i = 0; i < NAME_INDEX_STEP; i++) {
        char name[16];

        snprintf(name, sizeof(name), "%d", i);
        add_function(fixture, name, NULL, 65536 + 16 * (uint64_t)i);
    }
}

static void expect_indexed(struct tracestore *store)
{
    cr_assert_eq(ask(tracestore_db(store),
                     "SELECT up_to = (SELECT max(function_id) FROM functions) FROM indexed_functions"),
                 1);
    compare_all(tracestore_db(store));
}

/* A run whose recorder was killed has no end at which its names were indexed. */
Test(names, recovered_and_salvaged_runs_are_indexed)
{
    struct trace_recovered recovered;
    struct trace_salvaged salvaged;
    struct tracestore *copy = NULL;
    struct fixture fixture;
    char path[128];

    fixture_open(&fixture, NULL);
    fill(&fixture);
    fill_more(&fixture);
    cr_assert_eq(trace_writer_flush(fixture.writer, 50, NULL), 0);
    run_sql(tracestore_db(fixture.store), "UPDATE runs SET recorder = 'gone 1 1'");
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT up_to FROM indexed_functions"), 0);
    snprintf(path, sizeof(path), "%s/salvaged.db", fixture.folder);
    cr_assert_eq(tracestore_salvage(fixture.path, path, &salvaged, NULL), 0);
    cr_assert_eq(tracestore_open(path, TRACESTORE_READ, &copy, NULL), 0);
    expect_indexed(copy);
    tracestore_free(copy);
    cr_assert_eq(tracestore_recover(fixture.store, &recovered, NULL), 0);
    cr_assert_eq(recovered.runs, 1);
    expect_indexed(fixture.store);
    fixture_close(&fixture);
}

Test(names, many_are_indexed_when_the_run_ends_and_few_are_not)
{
    for (int many = 0; many < 2; many++) {
        struct fixture fixture;

        fixture_open(&fixture, NULL);
        fill(&fixture);
        if (many)
            fill_more(&fixture);
        cr_assert_eq(trace_writer_end(fixture.writer, 100, 0, NULL), 0);
        cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT up_to FROM indexed_functions"),
                     many ? ask(tracestore_db(fixture.store), "SELECT max(function_id) FROM functions") : 0);
        compare_all(tracestore_db(fixture.store));
        fixture_close(&fixture);
    }
}
