/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tables of a store: made in an empty one, completed in an older one. store_has_call_sites() and so on
 * (store.h) ask for what came later. */
#ifndef TRACESTORE_SCHEMA_H
#define TRACESTORE_SCHEMA_H

#include "store/db/db.h"

/* Makes the tables when the database has none. */
int schema_make(sqlite3 *db, struct error *err);

/* An older store gets what this version adds. */
int schema_complete(sqlite3 *db, struct error *err);

#endif
