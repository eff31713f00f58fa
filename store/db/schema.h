/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tables of a store (schema.sql). */
#ifndef TRACESTORE_SCHEMA_H
#define TRACESTORE_SCHEMA_H

#include "store/db/db.h"

/* Makes the tables when the database has none, whatever else tries to at the same time. */
int schema_make(sqlite3 *db, struct error *err);

#endif
