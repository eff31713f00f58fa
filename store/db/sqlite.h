/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SQLite as every file of store/ includes it. In the loadable extension (TRACESTORE_EXTENSION) all calls go
 * through the table of functions of the program that loaded us; analyzer/extension.c defines that table with
 * SQLITE_EXTENSION_INIT1, all other files see it as an external variable.
 */
#ifndef TRACESTORE_SQLITE_H
#define TRACESTORE_SQLITE_H

#ifdef TRACESTORE_EXTENSION
#include <sqlite3ext.h>
#ifndef TRACESTORE_EXTENSION_MAIN
SQLITE_EXTENSION_INIT3
#endif
#else
#include <sqlite3.h>
#endif

#endif
