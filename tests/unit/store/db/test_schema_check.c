/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stores whose tables are not as tracectl makes them are refused before anything of theirs runs. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "store/db/schema_check.h"
#include "tests/unit/store/fixture.h"

/* A finished store with a run of 200 events, not open. */
static void make_store(struct fixture *fixture)
{
    struct stream stream = {0};

    fixture_open(fixture, NULL);
    fixture_functions(fixture, 30);
    stream_generate(&stream, STREAM_RANDOM, 1, 200);
    write_events(fixture_thread(fixture, "0.0", TRACE_RETURNS_PROBED), &stream, 0, stream.count);
    cr_assert_eq(trace_writer_end(fixture->writer, 5000, 0, NULL), 0);
    trace_writer_free(fixture->writer);
    tracestore_free(fixture->store);
    fixture->writer = NULL;
    fixture->store = NULL;
    stream_release(&stream);
}

/* What another program does to the file. */
static void change(const struct fixture *fixture, const char *sql)
{
    sqlite3 *db;

    cr_assert_eq(sqlite3_open(fixture->path, &db), SQLITE_OK);
    run_sql(db, sql);
    cr_assert_eq(sqlite3_close(db), SQLITE_OK);
}

#define EDIT(what, from, to) \
    "PRAGMA writable_schema = ON;" \
    "UPDATE sqlite_schema SET sql = replace(sql, '" from "', '" to "') WHERE name = '" what "'"

static const struct {
    const char *sql;
    const char *words; /* of the refusal */
    bool all_lost;     /* salvaging finds no events, for the table that has them is no table */
} strange[] = {
    {"CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END", "the trigger 't'", false},
    {"CREATE VIEW v AS SELECT 1", "the view 'v'", false},
    {"CREATE TABLE recipes (name)", "the table 'recipes'", false},
    {"CREATE INDEX quick ON segments(length(data))", "the index 'quick'", false},
    {"CREATE VIRTUAL TABLE words USING fts5(text)", "the table 'words'", false},
    {"ANALYZE", "the table 'sqlite_stat1'", false},
    {EDIT("runs", "recorder TEXT NOT NULL", "recorder TEXT"), "its table 'runs'", false},
    {EDIT("processes_by_run", "(run_id)", "(run_id COLLATE NOCASE)"), "its index 'processes_by_run'", false},
    {EDIT("images", "UNIQUE", "/* UNIQUE, */ UNIQUE") ";" EDIT("threads", "name TEXT NOT NULL", "name ANY"),
     "its table 'threads'", false},
    {"ALTER TABLE tags RENAME TO labels", "the table 'labels'", false},
    {"ALTER TABLE losses ADD COLUMN guess INTEGER AS (count * 2)", "its table 'losses'", false},
    {"DROP INDEX journal_by_run", "missing: 'CREATE INDEX journal_by_run ON journal'", false},
    {"DROP TABLE blind", "missing: 'CREATE TABLE blind'", false},
    {"ALTER TABLE segments RENAME TO hidden; CREATE VIEW segments AS SELECT * FROM hidden", "'hidden'", true},
};

Test(schema_check, what_tracectl_does_not_make_is_refused)
{
    for (size_t i = 0; i < sizeof(strange) / sizeof(*strange); i++) {
        struct fixture fixture;
        struct tracestore *store = NULL;

        make_store(&fixture);
        change(&fixture, strange[i].sql);
        for (int mode = TRACESTORE_READ; mode <= TRACESTORE_CREATE; mode++) {
            struct error err = {0};

            cr_assert_eq(tracestore_open(fixture.path, (enum tracestore_mode)mode, &store, &err), -EINVAL,
                         "%s", strange[i].sql);
            cr_assert_not_null(strstr(err.message, strange[i].words), "%s: %s", strange[i].sql, err.message);
            cr_assert_null(store);
        }
        fixture_close(&fixture);
    }
}

Test(schema_check, what_is_known_of_it_can_be_salvaged)
{
    for (size_t i = 0; i < sizeof(strange) / sizeof(*strange); i++) {
        struct trace_salvaged salvaged;
        struct fixture fixture;
        struct error err = {0};
        char to[128];
        int r;

        make_store(&fixture);
        change(&fixture, strange[i].sql);
        snprintf(to, sizeof(to), "%s/new.db", fixture.folder);
        r = tracestore_salvage(fixture.path, to, &salvaged, &err);
        cr_assert_eq(r, strange[i].all_lost ? -EINVAL : 0, "%s: %s", strange[i].sql, err.message);
        if (!r) {
            cr_assert_eq(salvaged.events, 200, "%s", strange[i].sql);
            cr_assert_eq(tracestore_open(to, TRACESTORE_READ, &fixture.store, &err), 0, "%s", err.message);
            cr_assert_eq(tracestore_verify(fixture.store, NULL, NULL, NULL, NULL), 0);
        }
        fixture_close(&fixture);
    }
}

/* What comes into the store while it is open. */
Test(schema_check, triggers_and_views_of_a_store_never_run)
{
    struct fixture fixture;
    sqlite3 *db;

    make_store(&fixture);
    cr_assert_eq(tracestore_open(fixture.path, TRACESTORE_CHANGE, &fixture.store, NULL), 0);
    change(&fixture,
           "CREATE TRIGGER t BEFORE DELETE ON runs BEGIN SELECT raise(IGNORE); END;"
           "CREATE VIEW endless AS WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c)"
           " SELECT x FROM c");
    db = tracestore_db(fixture.store);
    cr_assert_neq(sqlite3_exec(db, "SELECT max(x) FROM endless", NULL, NULL, NULL), SQLITE_OK);
    run_sql(db, "DELETE FROM runs");
    cr_assert_eq(ask(db, "SELECT count(*) FROM runs"), 0);
    cr_assert_eq(ask(db, "SELECT count(*) FROM segments"), 0, "what refers to the runs goes with them");
    fixture_close(&fixture);
}

/* Comments and white space may differ from version to version. */
Test(schema_check, the_same_words_are_the_same_table)
{
    struct fixture fixture;

    make_store(&fixture);
    change(&fixture, EDIT("runs", "-- NULL: recording", "-- none: recording") ";" EDIT("tags", "    ", " "));
    cr_assert_eq(tracestore_open(fixture.path, TRACESTORE_CHANGE, &fixture.store, NULL), 0);
    fixture_close(&fixture);
}
