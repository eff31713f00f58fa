/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/sql/vtab.h"

#include <stdbool.h>

#include "base/array.h"
#include "base/error.h"
#include "store/db/name_index.h"
#include "store/db/schema_check.h"
#include "store/db/store.h"
#include "store/db/views_sql.h"
#include "store/segment/call_list.h"
#include "store/sql/percentile.h"
#include "store/sql/vtab_process_events.h"
#include "store/sql/vtab_scan.h"

/* decoded_segments(): how many segments this process has decoded so far. Whoever wants to know what a query
 * cost asks before and after. */
static void decoded_segments(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    sqlite3_result_int64(context, (sqlite3_int64)tracestore_decoded_segments());
}

/* A set of functions that event_iter.c binds to a statement. */
static struct function_set set_of_value(sqlite3_value *value)
{
    struct function_set set = {.ids = (uint32_t *)sqlite3_value_blob(value)};

    set.count = (size_t)sqlite3_value_bytes(value) / sizeof(*set.ids);
    return set;
}

/* segment_names(functions, set): whether the segment may have an event of a function of the set, by its list.
 */
static void segment_names(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    const uint8_t *data = sqlite3_value_blob(argv[0]);
    struct function_set set = set_of_value(argv[1]);

    sqlite3_result_int(context, call_list_may_name(data, (size_t)sqlite3_value_bytes(argv[0]), &set));
}

/* name_hash(name): what functions.name_hash has for a function of that name. */
static void name_hash(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    const char *name = (const char *)sqlite3_value_text(argv[0]);

    if (name)
        sqlite3_result_int64(context, function_name_hash(name));
}

static int register_functions(struct sqlite3 *db)
{
    static const struct {
        const char *name;
        int arguments, flags;
        void (*function)(sqlite3_context *, int, sqlite3_value **);
    } functions[] = {
        {"decoded_segments", 0, 0, decoded_segments},
        {"segment_names", 2, SQLITE_DETERMINISTIC, segment_names},
        {"name_hash", 1, SQLITE_DETERMINISTIC, name_hash},
    };
    int r = SQLITE_OK;

    for (size_t i = 0; r == SQLITE_OK && i < ARRAY_SIZE(functions); i++)
        r = sqlite3_create_function_v2(db, functions[i].name, functions[i].arguments,
                                       SQLITE_UTF8 | functions[i].flags, NULL, functions[i].function, NULL,
                                       NULL, NULL);
    return r == SQLITE_OK ? percentile_register(db) : r;
}

int tracestore_register_vtabs(struct sqlite3 *db, char **ret_message)
{
    static const struct {
        const char *name;
        const sqlite3_module *module;
    } tables[] = {
        {"events", &vtab_events_module},
        {"calls", &vtab_calls_module},
        {"call_edges", &vtab_call_edges_module},
        {"journal_functions", &vtab_journal_functions_module},
        {"function_names", &vtab_names_module},
        {"segment_functions", &vtab_segment_functions_module},
        {"function_calls", &vtab_function_calls_module},
        {"go_events", &vtab_go_events_module},
        {"goroutines", &vtab_goroutines_module},
        {"go_blocks", &vtab_go_blocks_module},
        {"sync_events", &vtab_sync_events_module},
    };
    int r = SQLITE_OK;

    for (size_t i = 0; r == SQLITE_OK && i < ARRAY_SIZE(tables); i++)
        r = sqlite3_create_module_v2(db, tables[i].name, tables[i].module, NULL, NULL);
    if (r == SQLITE_OK)
        r = register_functions(db);
    if (r != SQLITE_OK) {
        if (ret_message)
            *ret_message = sqlite3_mprintf("%s", sqlite3_errmsg(db));
        return r;
    }
    return sqlite3_exec(db, views_sql, NULL, NULL, ret_message);
}

int tracestore_register_in(struct sqlite3 *db, char **ret_message)
{
    const char *path = sqlite3_db_filename(db, "main");
    struct error err = {0};
    int64_t tables = 0;
    int code =
        db_number(db, "cannot read the tables", &tables, &err, "SELECT count(*) FROM main.sqlite_schema", "");

    if (!code && tables)
        code = schema_check(db, path ? path : "", &err);
    if (!code) {
        schema_distrust(db);
        sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        return tracestore_register_vtabs(db, ret_message);
    }
    if (ret_message)
        *ret_message = sqlite3_mprintf("%s", err.message);
    return SQLITE_ERROR;
}
