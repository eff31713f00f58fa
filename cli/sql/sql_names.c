/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/sql/sql_names.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

struct sql_names {
    char **words; /* sorted, each once */
    size_t count, capacity;
};

/* A virtual table without arguments is in no schema before a query has used it; SQLite and its extensions
 * bring some of their own, so ours are named. */
#define VIRTUAL_TABLES \
    "('events'), ('calls'), ('loops'), ('call_edges'), ('journal_functions'), ('function_names'), " \
    "('function_calls'), ('segment_functions'), ('go_events'), ('goroutines'), ('go_blocks'), " \
    "('sync_events')"

const char sql_tables_query[] =
    "SELECT column1 AS name, 'virtual' AS kind FROM (VALUES " VIRTUAL_TABLES
    ")"
    " UNION SELECT name, type FROM (SELECT name, type FROM main.sqlite_schema UNION ALL"
    " SELECT name, type FROM temp.sqlite_schema) WHERE type IN ('table', 'view')"
    " AND name NOT LIKE 'sqlite!_%' ESCAPE '!' AND name NOT GLOB 'function_trigrams*' ORDER BY name";

static const char columns_query[] =
    "SELECT DISTINCT c.name FROM (SELECT column1 AS name FROM (VALUES " VIRTUAL_TABLES
    ")"
    " UNION SELECT name FROM main.sqlite_schema WHERE type = 'table'"
    " UNION SELECT name FROM temp.sqlite_schema WHERE type = 'view') t, pragma_table_info(t.name) c";

static const char *const functions_and_commands[] = {
    ".exit",   ".help",        ".mode",    ".quit",  ".schema",    ".stats",
    ".tables", "avg",          "coalesce", "count",  "datetime",   "decoded_segments",
    "format",  "group_concat", "ifnull",   "instr",  "length",     "lower",
    "max",     "min",          "nullif",   "printf", "row_number", "substr",
    "sum",     "total",        "upper",
};

DEFINE_CLEANUP(cleanup_names, struct sql_names *, sql_names_free)

void sql_names_free(struct sql_names *names)
{
    if (!names)
        return;
    for (size_t i = 0; i < names->count; i++)
        free(names->words[i]);
    free(names->words);
    free(names);
}

/* ------------------------------------------------------------------------------------------ collecting */

static int add(struct sql_names *names, const char *word, size_t length)
{
    if (array_reserve(&names->words, &names->capacity, names->count + 1))
        return -ENOMEM;
    names->words[names->count] = strndup(word, length);
    if (!names->words[names->count])
        return -ENOMEM;
    names->count++;
    return 0;
}

static int add_keywords(struct sql_names *names)
{
    int r = 0;

    for (int i = 0; i < sqlite3_keyword_count() && r == 0; i++) {
        const char *keyword;
        int length;

        sqlite3_keyword_name(i, &keyword, &length);
        r = add(names, keyword, (size_t)length);
        for (int at = 0; at < length && r == 0; at++)
            names->words[names->count - 1][at] = (char)tolower((unsigned char)keyword[at]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(functions_and_commands) && r == 0; i++)
        r = add(names, functions_and_commands[i], strlen(functions_and_commands[i]));
    return r;
}

static int add_rows(struct sql_names *names, sqlite3 *db, const char *sql, struct error *err)
{
    sqlite3_stmt *row = NULL;
    int r = 0, result = sqlite3_prepare_v2(db, sql, -1, &row, NULL);

    while (result == SQLITE_OK && r == 0 && sqlite3_step(row) == SQLITE_ROW) {
        const char *word = (const char *)sqlite3_column_text(row, 0);

        if (word)
            r = add(names, word, strlen(word));
    }
    if (sqlite3_finalize(row) != SQLITE_OK || result != SQLITE_OK)
        return error_say(err, -EIO, "reading the names of tables: %s", sqlite3_errmsg(db));
    return r < 0 ? error_no_memory(err) : 0;
}

static int compare(const void *left, const void *right)
{
    return strcasecmp(*(char *const *)left, *(char *const *)right);
}

static void sort(struct sql_names *names)
{
    size_t kept = 0;

    qsort(names->words, names->count, sizeof(*names->words), compare);
    for (size_t i = 0; i < names->count; i++) {
        if (kept && !strcasecmp(names->words[kept - 1], names->words[i]))
            free(names->words[i]);
        else
            names->words[kept++] = names->words[i];
    }
    names->count = kept;
}

int sql_names_new(sqlite3 *db, struct sql_names **ret_names, struct error *err)
{
    CLEANUP(cleanup_names) struct sql_names *names = calloc(1, sizeof(*names));
    int r;

    if (!names || add_keywords(names) < 0)
        return error_no_memory(err);
    r = add_rows(names, db, sql_tables_query, err);
    if (r == 0)
        r = add_rows(names, db, columns_query, err);
    if (r < 0)
        return r;
    sort(names);
    *ret_names = take_pointer(names);
    return 0;
}

/* ------------------------------------------------------------------------------------------ matching */

size_t sql_names_match(const struct sql_names *names, const char *prefix, size_t length,
                       const char *const **ret_words)
{
    size_t first = 0, count = 0;

    while (first < names->count && strncasecmp(names->words[first], prefix, length) != 0)
        first++;
    while (first + count < names->count && !strncasecmp(names->words[first + count], prefix, length))
        count++;
    *ret_words = (const char *const *)names->words + first;
    return count;
}

size_t sql_names_common(const char *const *words, size_t count)
{
    size_t length = count ? strlen(words[0]) : 0;

    for (size_t i = 1; i < count; i++) {
        size_t same = 0;

        while (same < length &&
               tolower((unsigned char)words[i][same]) == tolower((unsigned char)words[0][same]))
            same++;
        length = same;
    }
    return length;
}
