/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The index of function names, function_trigrams (schema_names.sql).
 *
 * It is brought up to date when a run ends and when an older store is completed, not when functions are
 * written: that is the first moment of a recording, when thousands come at once and a program waits. So
 * readers take functions behind indexed_functions.up_to as they are, and nothing is missed in between, or
 * where a recorder was killed.
 */
#ifndef TRACESTORE_NAME_INDEX_H
#define TRACESTORE_NAME_INDEX_H

#include "store/db.h"

/* Adds the functions that are not in the index, in a transaction of its own. */
int name_index_update(sqlite3 *db, struct error *err);

/* Around the deletion of all functions whose image is not in temp.used_images, inside its transaction. */
int name_index_before_delete(sqlite3 *db, struct error *err);
int name_index_after_delete(sqlite3 *db, struct error *err);

#endif
