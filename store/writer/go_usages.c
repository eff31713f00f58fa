/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The concurrency-usage model of an image: written once, read by whoever measures coverage. */
#include <errno.h>

#include "base/error.h"
#include "store/streams/go_events.h"
#include "store/writer/writer.h"

static const char what[] = "cannot write the usages of a Go program";

/* ------------------------------------------------------------------------------------------ writing */

/* Whether the store has as many usages of the image already. */
static int are_stored(struct trace_writer *writer, int64_t image, size_t count, bool *ret_stored,
                      struct error *err)
{
    int64_t stored = 0;
    int code = 0;

    if (image < writer->numberings[NUMBER_IMAGE].settled)
        code = db_number(writer->db, what, &stored, err, "SELECT count(*) FROM go_usages WHERE image_id = ?1",
                         "i", numbering_id(&writer->numberings[NUMBER_IMAGE], image));
    *ret_stored = !code && stored == (int64_t)count;
    return code;
}

/* A case's row follows its usage's, which then has the largest usage_id. */
static int queue_usage(struct trace_writer *writer, int64_t image, const struct go_usage_description *usage)
{
    static const struct catalog_statement insert = {
        .what = what,
        .sql =
            "INSERT INTO go_usages (image_id, function, file, line, operation, standard, blocks)"
            " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        .types = "mttiiii"};
    static const struct catalog_statement insert_case = {
        .what = what,
        .sql = "INSERT INTO go_usage_cases SELECT max(usage_id), ?1, ?2, ?3 FROM go_usages",
        .types = "iii"};
    int code = catalog_queue_add(&writer->catalog, &insert, 0, image, usage->function, usage->file,
                                 (int64_t)usage->line, (int64_t)usage->operation, (int64_t)usage->standard,
                                 (int64_t)usage->blocks);

    for (size_t i = 0; i < usage->case_count && !code; i++)
        code = catalog_queue_add(&writer->catalog, &insert_case, 0, (int64_t)i, (int64_t)usage->case_lines[i],
                                 (int64_t)usage->case_sends[i]);
    return code;
}

int trace_writer_go_usages(struct trace_writer *writer, int64_t image_id,
                           const struct go_usage_description *usages, size_t count, struct error *err)
{
    static const struct catalog_statement clear = {
        .what = what, .sql = "DELETE FROM go_usages WHERE image_id = ?1", .types = "m"};
    bool stored = false;
    int code = are_stored(writer, image_id, count, &stored, err);

    if (code || stored)
        return code;
    code = catalog_queue_add(&writer->catalog, &clear, 0, image_id);
    for (size_t i = 0; i < count && !code; i++)
        code = queue_usage(writer, image_id, &usages[i]);
    return code ? error_no_memory(err) : 0;
}

/* ------------------------------------------------------------------------------------------ reading */

struct usage_list {
    struct go_usage_row *rows;
    size_t count, capacity;
};

void go_usage_rows_free(struct go_usage_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(rows[i].function);
        free(rows[i].file);
        free(rows[i].case_lines);
        free(rows[i].case_sends);
    }
    free(rows);
}

static void usage_list_release(struct usage_list *list)
{
    go_usage_rows_free(list->rows, list->count);
}

/* A row of the usage, and of one of its cases if it has any. */
static int add_row(struct usage_list *list, sqlite3_stmt *row)
{
    int64_t id = sqlite3_column_int64(row, 0);
    struct go_usage_row *usage = list->count ? &list->rows[list->count - 1] : NULL;

    if (usage && usage->usage_id == id)
        return 0;
    if (array_reserve(&list->rows, &list->capacity, list->count + 1))
        return -ENOMEM;
    usage = &list->rows[list->count++];
    *usage = (struct go_usage_row){.usage_id = id,
                                   .function = db_text(row, 1),
                                   .file = db_text(row, 2),
                                   .line = sqlite3_column_int(row, 3),
                                   .operation = (enum go_op)sqlite3_column_int(row, 4),
                                   .standard = sqlite3_column_int(row, 5) != 0,
                                   .blocks = sqlite3_column_int(row, 6) != 0};
    return usage->function && usage->file ? 0 : -ENOMEM;
}

static int add_case(struct go_usage_row *usage, sqlite3_stmt *row)
{
    size_t count = usage->case_count;
    int *lines = realloc(usage->case_lines, (count + 1) * sizeof(*lines));
    bool *sends;

    if (!lines)
        return -ENOMEM;
    usage->case_lines = lines;
    sends = realloc(usage->case_sends, (count + 1) * sizeof(*sends));
    if (!sends)
        return -ENOMEM;
    usage->case_sends = sends;
    lines[count] = sqlite3_column_int(row, 8);
    sends[count] = sqlite3_column_int(row, 9) != 0;
    usage->case_count++;
    return 0;
}

static int read_rows(sqlite3 *db, int64_t image_id, struct usage_list *list, struct error *err)
{
    static const char reading[] = "cannot read the usages of a Go program";
    AUTO_STATEMENT *row = NULL;
    int result = SQLITE_DONE,
        code = db_prepare(db,
                          "SELECT u.usage_id, function, file, u.line, operation, standard, blocks, c.number,"
                          " c.line, c.sends FROM main.go_usages u"
                          " LEFT JOIN main.go_usage_cases c USING (usage_id) WHERE image_id = ?1"
                          " ORDER BY file, u.line, operation, u.usage_id, c.number",
                          reading, &row, err);

    if (code)
        return code;
    db_bind(row, "i", image_id);
    while (!code && (result = db_row(row, "ittiiiiIII")) == SQLITE_ROW) {
        code = add_row(list, row);
        if (!code && sqlite3_column_type(row, 7) != SQLITE_NULL)
            code = add_case(&list->rows[list->count - 1], row);
    }
    if (code)
        return error_no_memory(err);
    return result == SQLITE_DONE ? 0 : db_fail(db, err, reading);
}

int go_usage_rows(struct tracestore *store, int64_t image_id, struct go_usage_row **ret_rows,
                  size_t *ret_count, struct error *err)
{
    CLEANUP(usage_list_release) struct usage_list list = {0};
    int code = read_rows(store->db, image_id, &list, err);

    if (code)
        return code;
    *ret_rows = list.rows;
    *ret_count = list.count;
    list = (struct usage_list){0};
    return 0;
}
