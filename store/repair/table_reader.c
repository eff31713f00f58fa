/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/repair/table_reader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store/db/db.h"
#include "store/db/schema_check.h"

struct table_reader {
    sqlite3 *db;
    sqlite3_stmt *find, *read; /* the first key from ?1 on; the row with the key ?1 */
    int (*visit)(void *context, sqlite3_stmt *row);
    void *context;
    struct table_losses *losses;
};

enum answer { ANSWER_ROW, ANSWER_END, ANSWER_NONE };

/* What lies at `key` or behind it. */
static enum answer look(struct table_reader *reader, int64_t key, int64_t *ret_found)
{
    int result;

    db_bind(reader->find, "i", key);
    result = sqlite3_step(reader->find);
    if (result == SQLITE_ROW)
        *ret_found = sqlite3_column_int64(reader->find, 0);
    sqlite3_reset(reader->find);
    if (result == SQLITE_DONE)
        return ANSWER_END;
    return result == SQLITE_ROW && *ret_found >= key ? ANSWER_ROW : ANSWER_NONE;
}

/* The first row behind the keys from `key` on that give no answer. */
static enum answer look_behind(struct table_reader *reader, int64_t key, int64_t *ret_found)
{
    int64_t silent = key, behind = key, found;
    enum answer answer = ANSWER_NONE;

    for (uint64_t step = 1; answer == ANSWER_NONE; step *= 2) { /* ends before the step is 2^63 */
        if (step > (uint64_t)(INT64_MAX - behind))
            return ANSWER_END;
        silent = behind;
        behind += (int64_t)step;
        answer = look(reader, behind, ret_found);
    }
    while (behind - silent > 1) {
        int64_t middle = silent + (behind - silent) / 2;
        enum answer there = look(reader, middle, &found);

        if (there == ANSWER_NONE) {
            silent = middle;
            continue;
        }
        behind = middle;
        answer = there;
        if (there == ANSWER_ROW)
            *ret_found = found;
    }
    return answer;
}

/* Visits the row, or counts it as lost. */
static int read_row(struct table_reader *reader, int64_t key)
{
    int result, code = 0;

    db_bind(reader->read, "i", key);
    result = sqlite3_step(reader->read);
    if (result == SQLITE_ROW)
        code = reader->visit(reader->context, reader->read);
    else if (result == SQLITE_NOMEM)
        code = -ENOMEM;
    else
        reader->losses->rows++;
    sqlite3_reset(reader->read);
    return code;
}

static int read_by_key(struct table_reader *reader)
{
    int64_t key = 0, found = 0;
    enum answer answer = look(reader, INT64_MIN, &found); /* ids are positive; others are seen as well */

    if (answer == ANSWER_NONE) {
        reader->losses->stretches++;
        if (!reader->losses->stop_at_first)
            answer = look_behind(reader, 0, &found);
    }
    while (answer == ANSWER_ROW) {
        int code = read_row(reader, found);

        if (code)
            return code;
        if (found == INT64_MAX || (reader->losses->stop_at_first && reader->losses->rows))
            return 0;
        key = found + 1;
        answer = look(reader, key, &found);
        if (answer != ANSWER_NONE)
            continue;
        reader->losses->stretches++;
        if (reader->losses->stop_at_first)
            return 0;
        answer = look_behind(reader, key, &found);
    }
    return 0;
}

/* 0: to the end, 1: something is in the way, <0 as table_read. */
static int read_in_order(struct table_reader *reader, const char *sql)
{
    AUTO_STATEMENT *row = NULL;
    int result = sqlite3_prepare_v2(reader->db, sql, -1, &row, NULL), code;

    while (result == SQLITE_OK || result == SQLITE_ROW) {
        result = sqlite3_step(row);
        code = result == SQLITE_ROW ? reader->visit(reader->context, row) : 0;
        if (code)
            return code;
    }
    return result == SQLITE_NOMEM ? -ENOMEM : result != SQLITE_DONE;
}

/* A table whose rows have no ids. */
static int read_both_ways(struct table_reader *reader, const char *table, const char *columns)
{
    char sql[512];
    int code;

    snprintf(sql, sizeof(sql), "SELECT %s FROM %s ORDER BY 1, 2", columns, table);
    code = read_in_order(reader, sql);
    if (code <= 0)
        return code;
    reader->losses->stretches++;
    snprintf(sql, sizeof(sql), "SELECT %s FROM %s ORDER BY 1 DESC, 2 DESC", columns, table);
    code = read_in_order(reader, sql);
    return code < 0 ? code : 0;
}

static bool has_row_ids(sqlite3 *db, const char *table)
{
    AUTO_STATEMENT *row = NULL;
    char sql[128];

    snprintf(sql, sizeof(sql), "SELECT rowid FROM %s", table);
    return sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK;
}

int table_read(sqlite3 *db, const char *table, const char *columns,
               int (*visit)(void *context, sqlite3_stmt *row), void *context, struct table_losses *losses)
{
    struct table_reader reader = {.db = db, .visit = visit, .context = context, .losses = losses};
    char find[256], read[512];
    int code = 0;

    if (!schema_may_read(db, table))
        return 0;
    if (!has_row_ids(db, table))
        return read_both_ways(&reader, table, columns);
    snprintf(find, sizeof(find), "SELECT rowid FROM %s NOT INDEXED WHERE rowid >= ?1 ORDER BY rowid LIMIT 1",
             table);
    snprintf(read, sizeof(read), "SELECT %s FROM %s NOT INDEXED WHERE rowid = ?1", columns, table);
    if (sqlite3_prepare_v2(db, find, -1, &reader.find, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(db, read, -1, &reader.read, NULL) == SQLITE_OK)
        code = read_by_key(&reader);
    else
        losses->stretches++;
    sqlite3_finalize(reader.find);
    sqlite3_finalize(reader.read);
    return code;
}
