/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the columns of a store's tables may hold, by the tables' own words: SQLite itself lets anything in. */
#ifndef TRACESTORE_COLUMN_TYPES_H
#define TRACESTORE_COLUMN_TYPES_H

#include "store/db/db.h"

/* The letters of "a, b, c" in memory from malloc; NULL: none left. */
char *column_types_of(sqlite3 *db, const char *table, const char *columns);

/* Calls `report` with each column of each of the store's tables in which rows have what they may not have,
 * and their number. Tables that cannot be read are left out. -ENOMEM. */
int column_types_check(sqlite3 *db,
                       void (*report)(void *context, const char *table, const char *column, int64_t rows),
                       void *context, struct error *err);

#endif
