/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/writer/catalog_queue.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "store/api/tracestore.h"

static bool is_text(char type)
{
    return type == 't' || type == 'T';
}

static void free_texts(const struct catalog_row *row, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_text(row->statement->types[i]))
            free(row->values[i].text);
}

void catalog_queue_drop_last(struct catalog_queue *queue)
{
    const struct catalog_row *row = &queue->rows[--queue->count];

    free_texts(row, strlen(row->statement->types));
}

void catalog_queue_clear(struct catalog_queue *queue)
{
    while (queue->count)
        catalog_queue_drop_last(queue);
}

void catalog_queue_release(struct catalog_queue *queue)
{
    catalog_queue_clear(queue);
    for (size_t i = 0; i < queue->prepared_count; i++) {
        sqlite3_finalize(queue->prepared[i].row);
        sqlite3_finalize(queue->prepared[i].find);
    }
    free(queue->prepared);
    free(queue->rows);
    *queue = (struct catalog_queue){0};
}

/* ------------------------------------------------------------------------------------------ in */

static int take_text(char type, const char *text, char **ret_copy)
{
    char *copy = NULL;

    if (text || type == 't') {
        copy = strdup(text ? text : "");
        if (!copy)
            return -ENOMEM;
    }
    *ret_copy = copy;
    return 0;
}

static int take_values(struct catalog_row *row, va_list values)
{
    const char *types = row->statement->types;

    for (size_t i = 0; types[i]; i++) {
        if (types[i] == 'd') {
            row->values[i].real = va_arg(values, double);
        } else if (!is_text(types[i])) {
            row->values[i].number = va_arg(values, int64_t);
        } else if (take_text(types[i], va_arg(values, const char *), &row->values[i].text)) {
            free_texts(row, i);
            return -ENOMEM;
        }
    }
    return 0;
}

int catalog_queue_add(struct catalog_queue *queue, const struct catalog_statement *statement, int64_t number,
                      ...)
{
    struct catalog_row row = {.statement = statement, .number = number};
    va_list values;
    int code;

    if (array_reserve(&queue->rows, &queue->capacity, queue->count + 1))
        return -ENOMEM;
    va_start(values, number);
    code = take_values(&row, values);
    va_end(values);
    if (!code)
        queue->rows[queue->count++] = row;
    return code;
}

/* ------------------------------------------------------------------------------------------ out */

static int find_prepared(struct catalog_queue *queue, sqlite3 *db, const struct catalog_statement *statement,
                         struct prepared_statement *ret_prepared, struct error *err)
{
    struct prepared_statement made = {.statement = statement};
    int code;

    for (size_t i = 0; i < queue->prepared_count; i++) {
        if (queue->prepared[i].statement == statement) {
            *ret_prepared = queue->prepared[i];
            return 0;
        }
    }
    if (array_reserve(&queue->prepared, &queue->prepared_capacity, queue->prepared_count + 1))
        return error_no_memory(err);
    code = db_prepare(db, statement->sql, statement->what, &made.row, err);
    if (!code && statement->find)
        code = db_prepare(db, statement->find, statement->what, &made.find, err);
    if (code) {
        sqlite3_finalize(made.row);
        return code;
    }
    queue->prepared[queue->prepared_count++] = made;
    *ret_prepared = made;
    return 0;
}

/* The id that a number stands for; other types are as they are. */
static int64_t resolve(const struct numbering numberings[NUMBER_KINDS], char type, int64_t number)
{
    static const char letters[NUMBER_KINDS + 1] = "mfsph"; /* by enum number_kind */
    const char *letter = strchr(letters, type);

    return letter ? numbering_id(&numberings[letter - letters], number) : number;
}

/* db_bind does not take its values from an array, so they are bound one by one. */
static int bind_value(sqlite3_stmt *row, int at, char type, const union catalog_value *value,
                      const struct numbering numberings[NUMBER_KINDS])
{
    int64_t number;

    if (is_text(type))
        return sqlite3_bind_text(row, at, value->text, -1, SQLITE_STATIC);
    if (type == 'd')
        return sqlite3_bind_double(row, at, value->real);
    if (type == 'n' ? value->number < 0 : type != 'i' && !value->number)
        return sqlite3_bind_null(row, at);
    number = resolve(numberings, type, value->number);
    return sqlite3_bind_int64(row, at, number);
}

/* The largest id of a kind that events name in 32 bits, or of any other. */
static int64_t largest_id(enum number_kind kind)
{
    return kind == NUMBER_FUNCTION ? TRACESTORE_LOST_FUNCTION - 1
           : kind == NUMBER_SITE   ? UINT32_MAX
                                   : INT64_MAX;
}

/* Steps the bound statement to its end; its first row, if it gives one, has the id. 1: it gives none. */
static int step(sqlite3 *db, sqlite3_stmt *bound, const struct catalog_row *row,
                struct numbering numberings[NUMBER_KINDS], struct error *err)
{
    const struct catalog_statement *statement = row->statement;
    int result = sqlite3_step(bound);
    int64_t id;

    if (result == SQLITE_DONE)
        return 1;
    if (result != SQLITE_ROW)
        return db_fail(db, err, statement->what);
    id = sqlite3_column_int64(bound, 0);
    if (sqlite3_reset(bound) != SQLITE_OK)
        return db_fail(db, err, statement->what);
    if (id > largest_id(statement->gives))
        return error_say(err, -EOVERFLOW, "%s: the store is full (use a new one)", statement->what);
    return numbering_set(&numberings[statement->gives], row->number, id) ? error_no_memory(err) : 0;
}

/* Binds the row's values to the statement and runs it. 1: it gives no row. */
static int run(sqlite3 *db, sqlite3_stmt *bound, const struct catalog_row *row,
               struct numbering numberings[NUMBER_KINDS], struct error *err)
{
    int code;

    for (int i = 0; row->statement->types[i]; i++)
        if (bind_value(bound, i + 1, row->statement->types[i], &row->values[i], numberings) != SQLITE_OK)
            return db_fail(db, err, row->statement->what);
    code = step(db, bound, row, numberings, err);
    sqlite3_reset(bound);
    sqlite3_clear_bindings(bound);
    return code;
}

static int write_row(struct catalog_queue *queue, sqlite3 *db, const struct catalog_row *row,
                     struct numbering numberings[NUMBER_KINDS], struct error *err)
{
    struct prepared_statement prepared = {0};
    int code = find_prepared(queue, db, row->statement, &prepared, err);

    if (code)
        return code;
    code = prepared.find ? run(db, prepared.find, row, numberings, err) : 1;
    if (code == 1)
        code = run(db, prepared.row, row, numberings, err);
    if (code != 1)
        return code;
    return row->statement->gives_id ? db_fail(db, err, row->statement->what) : 0;
}

int catalog_queue_write(struct catalog_queue *queue, sqlite3 *db, struct numbering numberings[NUMBER_KINDS],
                        struct error *err)
{
    int code = 0;

    for (size_t i = 0; i < queue->count && !code; i++)
        code = write_row(queue, db, &queue->rows[i], numberings, err);
    return code;
}
