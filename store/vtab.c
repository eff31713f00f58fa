/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/vtab.h"

#include <stdbool.h>

#include "base/array.h"
#include "store/store.h"
#include "store/views_sql.h"
#include "store/vtab_scan.h"

/* What an older store lacks (schema_additions.sql), as empty as it would be there, so that a query need not
 * care.
 */
static const char shims_sql[] =
    "CREATE TEMP VIEW IF NOT EXISTS call_sites AS SELECT NULL AS site_id, NULL AS image_id, NULL AS address,"
    " NULL AS function_id, NULL AS file, NULL AS line WHERE 0;"
    "CREATE TEMP VIEW IF NOT EXISTS losses AS SELECT *, NULL AS calls, NULL AS returns FROM main.losses";

static int add_shims(struct sqlite3 *db, char **ret_message)
{
    bool complete;

    if (store_has_additions(db, &complete, NULL) || complete)
        return SQLITE_OK;
    return sqlite3_exec(db, shims_sql, NULL, NULL, ret_message);
}

int tracestore_register_vtabs(struct sqlite3 *db, char **ret_message)
{
    /* Without xCreate they are there by their names and cannot be made or dropped. */
    static const struct {
        const char *name;
        const sqlite3_module *module;
    } tables[] = {
        {"events", &vtab_events_module},
        {"calls", &vtab_calls_module},
        {"call_edges", &vtab_call_edges_module},
        {"journal_functions", &vtab_journal_functions_module},
    };
    int r = SQLITE_OK;

    for (size_t i = 0; r == SQLITE_OK && i < ARRAY_SIZE(tables); i++)
        r = sqlite3_create_module_v2(db, tables[i].name, tables[i].module, NULL, NULL);
    if (r != SQLITE_OK) {
        if (ret_message)
            *ret_message = sqlite3_mprintf("%s", sqlite3_errmsg(db));
        return r;
    }
    r = sqlite3_exec(db, views_sql, NULL, NULL, ret_message);
    return r == SQLITE_OK ? add_shims(db, ret_message) : r;
}
