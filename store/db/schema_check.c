/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SQLite keeps the text of the statement that made each table and index. It is compared with the statements
 * of schema.sql, both without comments and white space, so that the tables are described once.
 */
#include "store/db/schema_check.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "store/db/schema_sql.h"

/* The tables that SQLite makes itself: for AUTOINCREMENT, and for the table of FTS5. */
static const char sqlite_tables[] =
    "CREATE TABLE sqlite_sequence(name, seq);"
    "CREATE TABLE 'function_trigrams_data'(id INTEGER PRIMARY KEY, block BLOB);"
    "CREATE TABLE 'function_trigrams_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;"
    "CREATE TABLE 'function_trigrams_config'(k PRIMARY KEY, v) WITHOUT ROWID;";

#define REMEDY "another program changed it; 'tracectl recover -o NEW.db' copies what it recognises"

/* Statements that make something. */
struct statements {
    struct statement {
        char *text; /* as normalise() leaves it */
        bool seen;  /* the store has it */
    } * list;
    size_t count, capacity;
};

static void statements_release(struct statements *statements)
{
    for (size_t i = 0; i < statements->count; i++)
        free(statements->list[i].text);
    free(statements->list);
}

/* ------------------------------------------------------------------------------------------ text of SQL */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Where the comment ends that `at` begins with; `at`: there is none. */
static const char *behind_comment(const char *at)
{
    const char *end = NULL;

    if (!strncmp(at, "--", 2))
        return at + strcspn(at, "\n");
    if (strncmp(at, "/*", 2) != 0)
        return at;
    end = strstr(at + 2, "*/");
    return end ? end + 2 : at + strlen(at);
}

/* Where the quoted text ends that `at` begins with. */
static const char *behind_quotes(const char *at)
{
    const char *end = strchr(at + 1, *at == '[' ? ']' : *at);

    return end ? end + 1 : at + strlen(at);
}

/* Copies the statement at `*sql` without comments, and with no more white space than is necessary to keep
 * words apart. It ends at the text's end, or at a semicolon if `one_of_many`; `*sql` is moved behind it. In
 * memory from malloc, NULL: none left. */
static char *normalise(const char **sql, bool one_of_many)
{
    char *text = calloc(strlen(*sql) + 1, 1), *to = text;
    bool space = false;

    while (text && **sql && !(one_of_many && **sql == ';')) {
        const char *behind = behind_comment(*sql);

        if (behind > *sql || isspace((unsigned char)**sql)) {
            *sql = behind > *sql ? behind : *sql + 1;
            space = true;
            continue;
        }
        if (space && to > text && is_word(to[-1]) && is_word(**sql))
            *to++ = ' ';
        space = false;
        behind = strchr("'\"`[", **sql) ? behind_quotes(*sql) : *sql + 1;
        while (*sql < behind)
            *to++ = *(*sql)++;
    }
    if (text && **sql)
        ++*sql;
    return text;
}

/* Whether what the statement makes has that name. */
static bool makes(const char *statement, const char *name)
{
    static const char *const beginnings[] = {"CREATE TABLE ", "CREATE TABLE", "CREATE VIRTUAL TABLE ",
                                             "CREATE INDEX ", "CREATE UNIQUE INDEX "};
    size_t length = strlen(name);

    for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++) {
        const char *at = statement + strlen(beginnings[i]);

        if (strncmp(statement, beginnings[i], strlen(beginnings[i])) != 0)
            continue;
        at += *at == '\'';
        if (!strncmp(at, name, length) && !is_word(at[length]))
            return true;
    }
    return false;
}

/* ------------------------------------------------------------------------------------------ what is known */

static int add_script(struct statements *known, const char *sql)
{
    while (*sql) {
        char *text = normalise(&sql, true);

        if (!text)
            return -ENOMEM;
        if (strncmp(text, "CREATE ", strlen("CREATE ")) != 0) {
            free(text);
            continue;
        }
        if (array_reserve(&known->list, &known->capacity, known->count + 1)) {
            free(text);
            return -ENOMEM;
        }
        known->list[known->count++] = (struct statement){.text = text};
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------ the store's */

enum { TYPE, NAME, SQL };

static const char *text_of(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);

    return text ? text : "";
}

/* An index that SQLite made for a constraint; it is refused without its table. */
static bool is_automatic(sqlite3_stmt *row)
{
    return sqlite3_column_type(row, SQL) == SQLITE_NULL && !strcmp(text_of(row, TYPE), "index") &&
           !strncmp(text_of(row, NAME), "sqlite_autoindex_", strlen("sqlite_autoindex_"));
}

/* 1: the row is as tracectl would have written it, 0: it is not; -ENOMEM. */
static int is_known(struct statements *known, sqlite3_stmt *row)
{
    const char *sql = text_of(row, SQL), *name = text_of(row, NAME);
    AUTO_FREE char *text = NULL;

    if (is_automatic(row))
        return 1;
    text = normalise(&sql, false);
    if (!text)
        return -ENOMEM;
    for (size_t i = 0; i < known->count; i++)
        if (!strcmp(known->list[i].text, text) && makes(text, name)) {
            known->list[i].seen = true;
            return 1;
        }
    return 0;
}

static int fail_unknown(const struct statements *known, sqlite3_stmt *row, const char *path,
                        struct error *err)
{
    const char *name = text_of(row, NAME);

    for (size_t i = 0; i < known->count; i++)
        if (makes(known->list[i].text, name))
            return error_say(err, -EINVAL,
                             "cannot open store %s: its %s '%.60s' differs from tracectl's schema (" REMEDY
                             ")",
                             path, text_of(row, TYPE), name);
    return error_say(err, -EINVAL,
                     "cannot open store %s: the %.20s '%.60s' is not part of tracectl's schema (" REMEDY ")",
                     path, text_of(row, TYPE), name);
}

static int check_seen(const struct statements *known, const char *path, struct error *err)
{
    for (size_t i = 0; i < known->count; i++)
        if (!known->list[i].seen)
            return error_say(err, -EINVAL, "cannot open store %s: missing: '%.*s' (" REMEDY ")", path,
                             (int)strcspn(known->list[i].text, "("), known->list[i].text);
    return 0;
}

int schema_check(sqlite3 *db, const char *path, struct error *err)
{
    CLEANUP(statements_release) struct statements known = {0};
    AUTO_STATEMENT *row = NULL;
    int result, code = db_prepare(db, "SELECT type, name, sql FROM main.sqlite_schema",
                                  "cannot read the tables", &row, err);

    if (code)
        return code;
    if (add_script(&known, schema_sql) || add_script(&known, sqlite_tables))
        return error_no_memory(err);
    while ((result = sqlite3_step(row)) == SQLITE_ROW) {
        code = is_known(&known, row);
        if (code < 0)
            return error_no_memory(err);
        if (!code)
            return fail_unknown(&known, row, path, err);
    }
    if (result != SQLITE_DONE)
        return db_fail(db, err, "cannot read the tables");
    return check_seen(&known, path, err);
}

bool schema_may_read(sqlite3 *db, const char *table)
{
    int64_t rows = 0;

    return !db_number(
               db, "", &rows, NULL,
               "SELECT count(*) FROM main.sqlite_schema WHERE type = 'table' AND name = ?1 AND rootpage > 1"
               " AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo(?1, 'main') WHERE hidden <> 0)",
               "t", table) &&
           rows == 1;
}

void schema_distrust(sqlite3 *db)
{
    static const int off[] = {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
                              SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER};

    for (size_t i = 0; i < ARRAY_SIZE(off); i++)
        sqlite3_db_config(db, off[i], 0, NULL);
    sqlite3_exec(db, "PRAGMA cell_size_check = ON", NULL, NULL, NULL);
}
