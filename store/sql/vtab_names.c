/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * function_names(function_id, name, demangled): functions by what is inside their names.
 *
 *     name LIKE '%alloc%'   demangled GLOB 'std::*::push_back*'   function_names MATCH 'vector push'
 *
 * LIKE, GLOB and = on a name, and MATCH (every word occurs in the name or the demangled name, whatever the
 * case) look up the trigrams of three ASCII characters that a match must contain in the store's index
 * (name_index.h), and then test the names that have all of them. The index keeps no positions, which is
 * why FTS5's own MATCH cannot be offered: it would know trigrams only, and no longer words. Where no three
 * characters in a row are given, or an older store has no index, all names are tested.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "store/db/db.h"
#include "store/db/name_index.h"
#include "store/db/store.h"
#include "store/sql/vtab_scan.h"
#include "store/sql/vtab_table.h"

#define MAX_TRIGRAMS 60 /* more would not make the answer smaller */

enum names_column { NAMES_FUNCTION, NAMES_NAME, NAMES_DEMANGLED, NAMES_TABLE };

/* What xBestIndex pushes down; idxStr names the column and ends with these words, ", " between two. */
enum names_test { TEST_ID, TEST_NAME, TEST_EQUAL, TEST_LIKE, TEST_GLOB, TEST_MATCH, TEST_COUNT };
static const char *const test_words[TEST_COUNT] = {"function_id=?", "name=?", "=?",
                                                   "LIKE ?",        "GLOB ?", "MATCH ?"};

struct names_cursor {
    struct vtab_cursor head;
    sqlite3_stmt *rows; /* function_id, name, demangled or name */
    char *words;        /* of MATCH, NULL: none */
};

static int names_connect(sqlite3 *db, void *context, int argc, const char *const *argv,
                         sqlite3_vtab **ret_table, char **ret_message)
{
    return vtab_connect(
        db,
        "CREATE TABLE function_names(function_id INTEGER, name TEXT, demangled TEXT, function_names HIDDEN)",
        ret_table);
}

/* ------------------------------------------------------------------------------------------ xBestIndex */

/* The test that a constraint makes, TEST_COUNT: none that helps. */
static enum names_test test_of(sqlite3_index_info *info, int i)
{
    const struct sqlite3_index_constraint *constraint = &info->aConstraint[i];
    bool text = constraint->iColumn == NAMES_NAME || constraint->iColumn == NAMES_DEMANGLED;

    switch (constraint->op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        if (constraint->iColumn == NAMES_TABLE)
            return TEST_MATCH; /* function_names('vector push') */
        if (constraint->iColumn == NAMES_NAME && !strcmp(sqlite3_vtab_collation(info, i), "BINARY"))
            return TEST_NAME;
        return constraint->iColumn == NAMES_FUNCTION ? TEST_ID : text ? TEST_EQUAL : TEST_COUNT;
    case SQLITE_INDEX_CONSTRAINT_LIKE:
        return text ? TEST_LIKE : TEST_COUNT;
    case SQLITE_INDEX_CONSTRAINT_GLOB:
        return text ? TEST_GLOB : TEST_COUNT;
    case SQLITE_INDEX_CONSTRAINT_MATCH:
        return constraint->iColumn == NAMES_TABLE ? TEST_MATCH : TEST_COUNT;
    default:
        return TEST_COUNT;
    }
}

static int names_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    static const char *const columns[] = {"", "name ", "demangled ", ""};
    static const double rows_left[TEST_COUNT] = {1, 2, 2, 200, 200, 200};
    char *text = sqlite3_mprintf("");
    int argument = 0;

    info->estimatedRows = 100000;
    for (int i = 0; text && i < info->nConstraint; i++) {
        enum names_test test = test_of(info, i);
        char *longer;

        if (test == TEST_COUNT)
            continue;
        if (!info->aConstraint[i].usable) {
            if (test != TEST_MATCH)
                continue;
            sqlite3_free(text);
            return SQLITE_CONSTRAINT; /* nobody else can test it */
        }
        longer =
            sqlite3_mprintf("%s%s%s%s", text, *text ? ", " : "",
                            test <= TEST_NAME ? "" : columns[info->aConstraint[i].iColumn], test_words[test]);
        sqlite3_free(text);
        text = longer;
        info->aConstraintUsage[i].argvIndex = ++argument;
        info->aConstraintUsage[i].omit = test == TEST_MATCH;
        if (rows_left[test] < (double)info->estimatedRows)
            info->estimatedRows = (sqlite3_int64)rows_left[test];
    }
    if (!text)
        return SQLITE_NOMEM;
    info->idxStr = text;
    info->needToFreeIdxStr = 1;
    info->estimatedCost = 10 + 3 * (double)info->estimatedRows;
    return SQLITE_OK;
}

/* ------------------------------------------------------------------------------------------ trigrams */

/* An FTS5 query that grows: trigrams, all of which must occur. */
struct trigrams {
    sqlite3_str *text;
    int count;
};

/* The trigrams of what lies between two characters that may stand for others. */
static void add_run(struct trigrams *trigrams, const char *run, size_t length)
{
    for (size_t i = 0; i + 3 <= length && trigrams->count < MAX_TRIGRAMS; i++) {
        sqlite3_str_appendall(trigrams->text, trigrams->count++ ? " \"" : "\"");
        for (size_t at = i; at < i + 3; at++)
            sqlite3_str_append(trigrams->text, run[at] == '"' ? "\"\"" : run + at, run[at] == '"' ? 2 : 1);
        sqlite3_str_appendall(trigrams->text, "\"");
    }
}

/* Whether the character stands for itself only. Those beyond ASCII are left out of trigrams: how FTS5 folds
 * their case need not be known here then. */
static bool is_literal(enum names_test test, char character)
{
    const char *special = test == TEST_LIKE    ? "%_"
                          : test == TEST_GLOB  ? "*?["
                          : test == TEST_MATCH ? " "
                                               : "";

    return (signed char)character > 0 && !strchr(special, character);
}

/* Behind GLOB's set of characters that begins here: a ']' that comes first is one of them. */
static const char *skip_set(const char *set)
{
    const char *end;

    set += set[1] == '^' ? 2 : 1;
    end = *set ? strchr(set + 1, ']') : NULL;
    return end ? end + 1 : set + strlen(set);
}

static void add_pattern(struct trigrams *trigrams, enum names_test test, const char *pattern)
{
    while (*pattern) {
        size_t length = 0;

        while (pattern[length] && is_literal(test, pattern[length]))
            length++;
        add_run(trigrams, pattern, length);
        pattern += length;
        if (*pattern == '[' && test == TEST_GLOB)
            pattern = skip_set(pattern);
        else if (*pattern)
            pattern++;
    }
}

/* ------------------------------------------------------------------------------------------ xFilter */

/* The test that the next word of idxStr says; moves behind it. */
static enum names_test next_test(const char **index_text)
{
    size_t length = strcspn(*index_text, ",");
    int test = 0;

    for (; test < TEST_COUNT; test++) {
        size_t size = strlen(test_words[test]);

        if (size <= length && !strncmp(*index_text + length - size, test_words[test], size))
            break;
    }
    *index_text += length + strspn(*index_text + length, ", ");
    return (enum names_test)test;
}

/* What narrows the rows down, besides trigrams. NULL: nothing. */
struct names_values {
    sqlite3_value *id, *name; /* function_id = , name = */
};

static int prepare_rows(struct names_cursor *cursor, const struct names_values *values, char *trigrams)
{
    static const char from_index[] =
        "SELECT f.function_id, f.name, coalesce(f.demangled, f.name) FROM main.function_trigrams(?1) t"
        " CROSS JOIN main.functions f ON f.function_id = t.rowid"
        " UNION ALL SELECT function_id, name, coalesce(demangled, name) FROM main.functions"
        " WHERE function_id > (SELECT up_to FROM main.indexed_functions)";
    static const char by_id[] =
        "SELECT function_id, name, coalesce(demangled, name) FROM main.functions WHERE function_id = ?1";
    static const char by_name[] =
        "SELECT function_id, name, coalesce(demangled, name) FROM main.functions"
        " WHERE name_hash = name_hash(?1) AND name = ?1";
    static const char all[] = "SELECT function_id, name, coalesce(demangled, name) FROM main.functions";
    sqlite3 *db = vtab_db(cursor->head.base.pVtab);
    int r;

    if (values->id || values->name) {
        r = sqlite3_prepare_v2(db, values->id ? by_id : by_name, -1, &cursor->rows, NULL);
        return r == SQLITE_OK ? sqlite3_bind_value(cursor->rows, 1, values->id ? values->id : values->name)
                              : r;
    }
    if (trigrams && sqlite3_prepare_v2(db, from_index, -1, &cursor->rows, NULL) == SQLITE_OK)
        return sqlite3_bind_text(cursor->rows, 1, trigrams, -1, SQLITE_TRANSIENT);
    /* An SQLite without FTS5. */
    return sqlite3_prepare_v2(db, all, -1, &cursor->rows, NULL);
}

static bool contains(const char *text, const char *word, size_t length)
{
    for (; *text; text++)
        if (!sqlite3_strnicmp(text, word, (int)length))
            return true;
    return false;
}

/* Whether every word of MATCH is in the row's name or demangled name. */
static bool has_words(const struct names_cursor *cursor)
{
    const char *name = (const char *)sqlite3_column_text(cursor->rows, 1);
    const char *demangled = (const char *)sqlite3_column_text(cursor->rows, 2);

    for (const char *word = cursor->words; word && *word; word += strspn(word, " ")) {
        size_t length = strcspn(word, " ");

        if (length && !(name && contains(name, word, length)) &&
            !(demangled && contains(demangled, word, length)))
            return false;
        word += length;
    }
    return true;
}

static int names_next(sqlite3_vtab_cursor *base)
{
    struct names_cursor *cursor = (struct names_cursor *)base;
    struct error err;
    int r;

    do {
        r = db_row(cursor->rows, "itt");
    } while (r == SQLITE_ROW && !has_words(cursor));
    cursor->head.end = r != SQLITE_ROW;
    if (r == SQLITE_ROW)
        cursor->head.row = sqlite3_column_int64(cursor->rows, 0); /* the id */
    if (r == SQLITE_ROW || r == SQLITE_DONE)
        return SQLITE_OK;
    return vtab_fail(base->pVtab, db_fail(vtab_db(base->pVtab), &err, "cannot read the functions"), &err);
}

static void cursor_clear(struct names_cursor *cursor)
{
    sqlite3_finalize(cursor->rows);
    sqlite3_free(cursor->words);
    cursor->rows = NULL;
    cursor->words = NULL;
    cursor->head.end = true;
}

/* Takes one constraint's value. SQLITE_EMPTY: no row can match. */
static int take_value(struct names_cursor *cursor, enum names_test test, sqlite3_value *value,
                      struct trigrams *trigrams)
{
    const char *text = (const char *)sqlite3_value_text(value);

    if (!text)
        return SQLITE_EMPTY;
    if (test == TEST_MATCH) {
        char *words = sqlite3_mprintf("%s %s", cursor->words ? cursor->words : "", text);

        if (!words)
            return SQLITE_NOMEM;
        sqlite3_free(cursor->words);
        cursor->words = words;
    }
    add_pattern(trigrams, test, text);
    return SQLITE_OK;
}

static int names_filter(sqlite3_vtab_cursor *base, int index_number, const char *index_text, int argc,
                        sqlite3_value **argv)
{
    struct names_cursor *cursor = (struct names_cursor *)base;
    struct trigrams trigrams = {.text = sqlite3_str_new(NULL)};
    struct names_values values = {0};
    int r = SQLITE_OK;
    char *query;

    cursor_clear(cursor);
    for (int i = 0; i < argc && r == SQLITE_OK; i++) {
        enum names_test test = next_test(&index_text);

        if (test == TEST_ID)
            values.id = argv[i];
        if (test == TEST_NAME)
            values.name = argv[i];
        if (test != TEST_ID)
            r = take_value(cursor, test, argv[i], &trigrams);
    }
    query = sqlite3_str_finish(trigrams.text);
    if (r == SQLITE_OK)
        r = prepare_rows(cursor, &values, query);
    sqlite3_free(query);
    if (r == SQLITE_OK)
        return names_next(base);
    return r == SQLITE_EMPTY ? SQLITE_OK : r;
}

/* ------------------------------------------------------------------------------------------ rows */

static int names_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
    return vtab_open(sizeof(struct names_cursor), ret_cursor);
}

static int names_close(sqlite3_vtab_cursor *base)
{
    cursor_clear((struct names_cursor *)base);
    sqlite3_free(base);
    return SQLITE_OK;
}

static int names_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct names_cursor *cursor = (struct names_cursor *)base;

    if (column != NAMES_TABLE)
        sqlite3_result_value(context, sqlite3_column_value(cursor->rows, column));
    return SQLITE_OK;
}

const sqlite3_module vtab_names_module = VTAB_MODULE(names);
