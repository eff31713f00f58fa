/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The virtual tables of docs/sql.md (events, calls, call_edges, function_calls, ...), its functions and the
 * views, for any SQLite connection whose main database is a store:
 * libtracestore's own and, through analyzer/extension.c, those of the sqlite3 shell and other programs.
 */
#ifndef TRACESTORE_VTAB_H
#define TRACESTORE_VTAB_H

struct sqlite3;

/* Registers the modules and makes the temporary views of store/db/views.sql. Returns an SQLite result code;
 * on failure `ret_message` (may be NULL) gets a text to free with sqlite3_free. */
int tracestore_register_vtabs(struct sqlite3 *db, char **ret_message);

/* The same for a connection that somebody else has opened: refused when its main database has tables and they
 * are not those of a store (schema_check.h). The connection is defensive from then on, and distrusts the
 * schema. */
int tracestore_register_in(struct sqlite3 *db, char **ret_message);

#endif
