/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/order/recorded_functions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "store/db/db.h"

static const char what[] = "cannot read the functions of the run";

/* ---------------------------------------------------------------------------------------------- reading */

/* The text of a name without "@plt". */
static int bare_text(struct sample_set *set, const char *name, uint32_t *ret_text)
{
    const char *stub = strstr(name, "@plt");
    AUTO_FREE char *bare = stub ? strndup(name, (size_t)(stub - name)) : strdup(name);

    return bare ? sample_set_text(set, bare, ret_text) : -ENOMEM;
}

/* One row: id, image's path and build id, address, name, called, blind, file and line of what has no size. */
static int read_row(struct sample_set *set, struct recorded_functions *functions, sqlite3_stmt *rows)
{
    struct recorded_function function = {.id = (uint32_t)sqlite3_column_int64(rows, 0),
                                         .address = (uint64_t)sqlite3_column_int64(rows, 3),
                                         .called = sqlite3_column_int(rows, 5),
                                         .blind = sqlite3_column_int(rows, 6),
                                         .line = (uint32_t)sqlite3_column_int64(rows, 8)};
    const char *path = (const char *)sqlite3_column_text(rows, 1);
    const char *build_id = (const char *)sqlite3_column_text(rows, 2);
    const char *name = (const char *)sqlite3_column_text(rows, 4);

    if (!path || !name || sample_set_image(set, path, path, build_id, &function.image) < 0 ||
        bare_text(set, name, &function.name) < 0 ||
        sample_set_text(set, (const char *)sqlite3_column_text(rows, 7), &function.file) < 0 ||
        array_reserve(&functions->items, &functions->capacity, functions->count + 1) < 0)
        return -ENOMEM;
    functions->items[functions->count++] = function;
    return 0;
}

static int read_rows(sqlite3 *db, int64_t run_id, struct sample_set *set,
                     struct recorded_functions *functions, struct error *err)
{
    AUTO_STATEMENT *rows = NULL;
    int r = db_prepare(db,
                       "WITH called AS (SELECT DISTINCT function_id FROM function_calls WHERE run_id = ?1) "
                       "SELECT f.function_id, i.path, i.build_id, f.address, coalesce(f.demangled, f.name), "
                       "f.function_id IN called, "
                       "f.function_id IN (SELECT function_id FROM main.blind WHERE run_id = ?1), "
                       "iif(f.size = 0, f.file, NULL), iif(f.size = 0, f.line, NULL) "
                       "FROM main.functions f JOIN main.images i USING (image_id) WHERE f.image_id IN "
                       "(SELECT image_id FROM main.functions WHERE function_id IN called)",
                       what, &rows, err);
    int step = SQLITE_DONE;

    if (r < 0)
        return r;
    if (db_bind(rows, "i", run_id) != SQLITE_OK)
        return db_fail(db, err, what);
    while (r == 0 && (step = db_row(rows, "ittitiiTI")) == SQLITE_ROW)
        r = read_row(set, functions, rows);
    if (r < 0)
        return error_no_memory(err), -ENOMEM;
    return step == SQLITE_DONE ? 0 : db_fail(db, err, what);
}

/* Whether the run's options match one of two patterns. */
static int has_option(sqlite3 *db, int64_t run_id, const char *first, const char *second, bool *ret_has,
                      struct error *err)
{
    int64_t has = 0;
    int r = db_number(db, what, &has, err,
                      "SELECT ' ' || options || ' ' LIKE ?2 OR ' ' || options || ' ' LIKE ?3 "
                      "FROM main.runs WHERE run_id = ?1",
                      "itt", run_id, first, second);

    *ret_has |= has != 0;
    return r;
}

/* What the command line of the recording says; options may be abbreviated. */
static int read_options(sqlite3 *db, int64_t run_id, struct recorded_functions *functions, struct error *err)
{
    int r = has_option(db, run_id, "% --fu%", "% --fi%", &functions->chosen, err);

    if (r == 0)
        r = has_option(db, run_id, "% --exc%", "% --so%", &functions->chosen, err);
    if (r == 0)
        r = has_option(db, run_id, "% -p%", "% --p%", &functions->attached, err);
    return r;
}

/* ---------------------------------------------------------------------------------------------- order */

static int compare_places(const void *left, const void *right)
{
    const struct recorded_function *a = left, *b = right;

    if (a->image != b->image)
        return a->image < b->image ? -1 : 1;
    return (a->address > b->address) - (a->address < b->address);
}

static int compare_ids(const void *left, const void *right, void *items)
{
    const struct recorded_function *functions = items;
    uint32_t a = functions[*(const uint32_t *)left].id, b = functions[*(const uint32_t *)right].id;

    return (a > b) - (a < b);
}

static int sort(struct recorded_functions *functions)
{
    functions->by_id = calloc(functions->count + 1, sizeof(*functions->by_id));
    if (!functions->by_id)
        return -ENOMEM;
    for (size_t i = 0; i < functions->count; i++)
        functions->by_id[i] = (uint32_t)i;
    if (functions->count == 0)
        return 0;
    qsort(functions->items, functions->count, sizeof(*functions->items), compare_places);
    qsort_r(functions->by_id, functions->count, sizeof(*functions->by_id), compare_ids, functions->items);
    return 0;
}

int recorded_functions_read(struct tracestore *store, int64_t run_id, struct sample_set *set,
                            struct recorded_functions *functions, struct error *err)
{
    sqlite3 *db = tracestore_db(store);
    int r;

    memset(functions, 0, sizeof(*functions));
    r = read_options(db, run_id, functions, err);
    if (r == 0)
        r = read_rows(db, run_id, set, functions, err);
    if (r == 0 && sort(functions) < 0)
        return error_no_memory(err), -ENOMEM;
    return r;
}

void recorded_functions_release(struct recorded_functions *functions)
{
    free(functions->items);
    free(functions->by_id);
    memset(functions, 0, sizeof(*functions));
}

const struct recorded_function *recorded_functions_by_id(const struct recorded_functions *functions,
                                                         uint32_t id)
{
    size_t low = 0, high = functions->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct recorded_function *item = &functions->items[functions->by_id[middle]];

        if (item->id == id)
            return item;
        if (item->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const struct recorded_function *recorded_functions_at(const struct recorded_functions *functions,
                                                      uint32_t image, uint64_t address)
{
    const struct recorded_function key = {.image = image, .address = address};

    return functions->count ? bsearch(&key, functions->items, functions->count, sizeof(key), compare_places)
                            : NULL;
}
