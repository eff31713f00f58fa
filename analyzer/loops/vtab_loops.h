/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The virtual table loops (docs/sql.md), for connections that have the tables of store/sql/vtab.h.
 *
 * It is here, and not among the others in store/, because it needs the loop recogniser, and store/ may not
 * depend on analyzer/. Who wants all tables registers both: tracectl does, and so does the loadable
 * extension.
 */
#ifndef TRACECTL_ANALYZER_LOOPS_VTAB_LOOPS_H
#define TRACECTL_ANALYZER_LOOPS_VTAB_LOOPS_H

struct sqlite3;

/* Registers the table. Returns an SQLite result code; the connection has its text. */
int loops_register_vtab(struct sqlite3 *db);

#endif
