/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Indexes of the names of functions: by a hash of the name, functions.name_hash (schema.sql), and by what is
 * inside them, function_trigrams (schema.sql).
 *
 * The second is brought up to date when a run ends, not when functions
 * are written: that is the first moment of a recording, when thousands come at once and a program waits. So
 * readers take functions behind indexed_functions.up_to as they are, and nothing is missed in between, or
 * where a recorder was killed.
 */
#ifndef TRACESTORE_NAME_INDEX_H
#define TRACESTORE_NAME_INDEX_H

#include <stdbool.h>

#include "store/db/db.h"

/* functions.name_hash of a name: the lowest 23 bits of its CRC-32, which SQLite keeps in three bytes. An
 * index of it is a third of one of the names; whoever looks a name up compares the names of the few rows
 * found. */
uint32_t function_name_hash(const char *name);

/* So many functions are not worth an index: to look at all their names takes a few milliseconds, and an index
 * of them as many bytes as their rows. */
#define NAME_INDEX_STEP 8192

/* Adds the functions that are not in the index, in a transaction of its own; the second when there are
 * NAME_INDEX_STEP of them at least. */
int name_index_build(sqlite3 *db, struct error *err);
int name_index_update(sqlite3 *db, struct error *err);

/* Around the deletion of all functions whose image is not in temp.used_images, inside its transaction. */
int name_index_before_delete(sqlite3 *db, struct error *err);
int name_index_after_delete(sqlite3 *db, struct error *err);

#endif
