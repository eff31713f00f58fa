/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The SQL aggregates percentile(x, p) and median(x): the value below which p percent of the numbers lie, between
 * two of them by linear interpolation (type 7 of R. J. Hyndman and Y. Fan, "Sample Quantiles in Statistical
 * Packages", The American Statistician 50(4), 1996), as SQLite's own extension of that name has it. NULLs are
 * left out; of none the answer is NULL. The numbers are kept in memory, eight bytes each.
 */
#ifndef TRACESTORE_PERCENTILE_H
#define TRACESTORE_PERCENTILE_H

#include "store/db/sqlite.h"

/* An SQLite result. */
int percentile_register(sqlite3 *db);

#endif
