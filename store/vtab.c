/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/vtab.h"

#include "base/array.h"
#include "store/views_sql.h"
#include "store/vtab_scan.h"

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
    return sqlite3_exec(db, views_sql, NULL, NULL, ret_message);
}
