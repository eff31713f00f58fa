/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether the tables of a store are those that tracectl makes. Stores come from others: a trigger, a view in
 * the place of a table or a column that is computed would be run by whoever reads or changes the store.
 */
#ifndef TRACESTORE_SCHEMA_CHECK_H
#define TRACESTORE_SCHEMA_CHECK_H

#include <stdbool.h>

#include "store/db/db.h"

/* Switches off what may come with a database: triggers and views that are not temporary, functions in the
 * schema that are not harmless, fts3_tokenizer(); and has SQLite check the sizes of cells. For every
 * connection to a store. */
void schema_distrust(sqlite3 *db);

/*
 * Compares the main database's list of tables, word by word and but for comments, with schema.sql. -EINVAL
 * with an error line that names `path` and the first thing that is strange or missing; an SQLite error as
 * errno.
 */
int schema_check(sqlite3 *db, const char *path, struct error *err);

/* Whether rows of the table can be read without running something of the store's: it is an ordinary table
 * without computed columns, though it may not be as tracectl makes it. For salvaging. */
bool schema_may_read(sqlite3 *db, const char *table);

#endif
