/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tracestore.so, a product beside the executable: the virtual tables and views of docs/sql.md in any program
 * with SQLite.
 *
 *     sqlite3 tracectl.db -cmd '.load build/tracestore' 'SELECT name, sum(calls) FROM call_counts GROUP BY
 * name'
 *
 * The tables read the main database of the connection that loads it, which is refused when it is no store as
 * tracectl makes them. All calls of SQLite go through the
 * loading program's table of functions (store/db/sqlite.h), so it needs no libsqlite3 of its own.
 */
#define TRACESTORE_EXTENSION_MAIN
#include "analyzer/loops/vtab_loops.h"
#include "store/db/sqlite.h"
#include "store/sql/vtab.h"

SQLITE_EXTENSION_INIT1

/* SQLite derives the name of the entry point from the name of the file. */
int sqlite3_tracestore_init(sqlite3 *db, char **ret_message, const sqlite3_api_routines *api);

int sqlite3_tracestore_init(sqlite3 *db, char **ret_message, const sqlite3_api_routines *api)
{
    int r;

    SQLITE_EXTENSION_INIT2(api);
    r = tracestore_register_in(db, ret_message);
    return r == SQLITE_OK ? loops_register_vtab(db) : r;
}
