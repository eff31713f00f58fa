/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SQLite keeps the text of the statement that made each table and index. It is compared with the statements
 * of schema*.sql, both without comments and white space, so that what is known is written down once. A column
 * that was added (ALTER TABLE) stands at the end of its table's text.
 */
#include "store/db/schema_check.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "store/db/schema_additions_sql.h"
#include "store/db/schema_aliases_sql.h"
#include "store/db/schema_budget_sql.h"
#include "store/db/schema_go_sql.h"
#include "store/db/schema_names_sql.h"
#include "store/db/schema_older_sql.h"
#include "store/db/schema_order_sql.h"
#include "store/db/schema_sql.h"
#include "store/db/schema_sync_sql.h"

/* In the order in which they can be added. */
static const char *const scripts[] = {schema_sql,       schema_older_sql,  schema_additions_sql,
                                      schema_names_sql, schema_go_sql,     schema_sync_sql,
                                      schema_order_sql, schema_budget_sql, schema_aliases_sql};

#define REMEDY "it was changed by something else; 'tracectl recover -o NEW.db' takes over what it knows"

/* Statements that make something, as normalise() leaves them. */
struct statements {
    char **texts;
    size_t count, capacity;
    size_t required; /* the first ones, at most 64, are in every store, in this form or in an older one */
    uint64_t seen;   /* a bit for each of those that the store has */
};

static void statements_release(struct statements *statements)
{
    for (size_t i = 0; i < statements->count; i++)
        free(statements->texts[i]);
    free(statements->texts);
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

/* Takes the first `what` out of the text. */
static void cut_out(char *text, const char *what)
{
    char *at = strstr(text, what);

    if (at)
        memmove(at, at + strlen(what), strlen(at + strlen(what)) + 1);
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

static int add_text(struct statements *known, char *text)
{
    if (!text || array_reserve(&known->texts, &known->capacity, known->count + 1)) {
        free(text);
        return -ENOMEM;
    }
    known->texts[known->count++] = text;
    return 0;
}

/* "ALTER TABLE name ADD COLUMN column": one more form for each form of the table. */
static int add_column(struct statements *known, const char *alter)
{
    size_t forms = known->count;
    const char *column = strstr(alter, " ADD COLUMN ");
    char name[64] = "";
    int r = 0;

    if (sscanf(alter, "ALTER TABLE %63[a-z_]", name) != 1 || !column)
        return 0;
    column += strlen(" ADD COLUMN ");
    for (size_t i = 0; i < forms && !r; i++) {
        const char *form = known->texts[i];
        char *text;

        if (!makes(form, name) || form[strlen(form) - 1] != ')')
            continue;
        if (asprintf(&text, "%.*s,%s)", (int)strlen(form) - 1, form, column) < 0)
            return -ENOMEM;
        r = add_text(known, text);
    }
    return r;
}

static int add_script(struct statements *known, const char *sql)
{
    int r = 0;

    while (*sql && !r) {
        char *text = normalise(&sql, true);

        if (!text)
            return -ENOMEM;
        if (!strncmp(text, "CREATE ", strlen("CREATE "))) {
            cut_out(text, "IF NOT EXISTS ");
            cut_out(text, "main.");
            r = add_text(known, text);
            continue;
        }
        if (!strncmp(text, "ALTER ", strlen("ALTER ")))
            r = add_column(known, text);
        free(text);
    }
    return r;
}

static int know(struct statements *known)
{
    int r = 0;

    for (size_t i = 0; i < ARRAY_SIZE(scripts) && !r; i++) {
        r = add_script(known, scripts[i]);
        if (!i)
            known->required = known->count;
    }
    return r;
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
static int is_known(const struct statements *known, sqlite3_stmt *row)
{
    const char *sql = text_of(row, SQL), *name = text_of(row, NAME);
    AUTO_FREE char *text = NULL;

    if (is_automatic(row))
        return 1;
    text = normalise(&sql, false);
    if (!text)
        return -ENOMEM;
    for (size_t i = 0; i < known->count; i++)
        if (!strcmp(known->texts[i], text))
            return makes(text, name);
    return 0;
}

static int say_strange(const struct statements *known, sqlite3_stmt *row, const char *path, struct error *err)
{
    const char *name = text_of(row, NAME);

    for (size_t i = 0; i < known->count; i++)
        if (makes(known->texts[i], name))
            return error_say(err, -EINVAL,
                             "cannot open store %s: its %s '%.60s' is not as tracectl makes it (" REMEDY ")",
                             path, text_of(row, TYPE), name);
    return error_say(err, -EINVAL,
                     "cannot open store %s: it has the %.20s '%.60s', which tracectl does not make (" REMEDY
                     ")",
                     path, text_of(row, TYPE), name);
}

/* Notes which of the required statements made the thing of that name. */
static void note_seen(struct statements *known, const char *name)
{
    for (size_t i = 0; i < known->required; i++)
        if (makes(known->texts[i], name))
            known->seen |= UINT64_C(1) << i;
}

static int check_seen(const struct statements *known, const char *path, struct error *err)
{
    for (size_t i = 0; i < known->required; i++)
        if (!(known->seen >> i & 1))
            return error_say(err, -EINVAL, "cannot open store %s: it lacks what '%.*s' makes (" REMEDY ")",
                             path, (int)strcspn(known->texts[i], "("), known->texts[i]);
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
    if (know(&known))
        return error_no_memory(err);
    while ((result = sqlite3_step(row)) == SQLITE_ROW) {
        code = is_known(&known, row);
        if (code < 0)
            return error_no_memory(err);
        if (!code)
            return say_strange(&known, row, path, err);
        note_seen(&known, text_of(row, NAME));
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
