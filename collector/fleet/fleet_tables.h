/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tables of a run, in a store and in a fleet, and how their rows go from one to the other. */
#ifndef TRACECTL_FLEET_TABLES_H
#define TRACECTL_FLEET_TABLES_H

#include "collector/fleet/fleet.h"
#include "store/db/db.h"

#define FLEET_VERSION "1" /* of the schema */

/* A table that a store and a fleet have under the same name, with the same columns; the fleet's has run_id before them. */
struct fleet_table {
    const char *name, *columns;
    bool of_run; /* the store's table has a column run_id, too */
};
extern const struct fleet_table fleet_tables[];
extern const size_t fleet_table_count;

/* Sends the rows of a query on a store as those of a COPY: "COPY tracectl.tags (run_id, key, value) FROM STDIN". `types`
 * are the columns' as db_row() has them. */
int fleet_copy_in(struct fleet *fleet, const char *copy, sqlite3 *db, const char *sql, const char *types,
                  struct error *err);

/* Calls `insert`, with its parameters bound to the columns, for each row of a COPY ... TO STDOUT. -EBADMSG: a row does not
 * have the columns of `types`. */
int fleet_copy_out(struct fleet *fleet, const char *copy, sqlite3 *db, sqlite3_stmt *insert,
                   const char *types, struct error *err);

/* A store of its own for one run, in a file without a name that others know; `path` is the file's. Remove it with
 * fleet_scratch_remove(). */
int fleet_scratch_path(char **ret_path, struct error *err);
void fleet_scratch_remove(char *path);

#endif
