/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The words that the shell of `tracectl sql` completes: SQL's keywords, tables, columns, its own commands. */
#ifndef TRACECTL_CLI_SQL_SQL_NAMES_H
#define TRACECTL_CLI_SQL_SQL_NAMES_H

#include <stddef.h>

#include "store/db/sqlite.h"

struct error;

struct sql_names;

/* Reads the names from a store's connection. Free with sql_names_free, which accepts NULL. */
int sql_names_new(sqlite3 *db, struct sql_names **ret_names, struct error *err);
void sql_names_free(struct sql_names *names);

/* The words that begin with the `length` characters of `prefix`, whatever their case: *ret_words points at
 * the first, in alphabetical order. */
size_t sql_names_match(const struct sql_names *names, const char *prefix, size_t length,
                       const char *const **ret_words);

/* How many characters all of the words have in common at their beginning; 0 without words. */
size_t sql_names_common(const char *const *words, size_t count);

/* A query for the tables and views that people ask about, with the columns name and kind ('table', 'view' or
 * 'virtual'). */
extern const char sql_tables_query[];

#endif
