/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Makes a store what it was before it had packed lists of functions and hashes of their names, with what is
 * added to such a store. For a connection of libtracestore that may write. */
#ifndef TESTS_STORE_OLD_FORM_H
#define TESTS_STORE_OLD_FORM_H

static const char old_form_sql[] =
    "PRAGMA foreign_keys = OFF;"
    "BEGIN;"
    "CREATE TEMP TABLE old_counts AS SELECT * FROM segment_functions;"
    "CREATE TEMP TABLE old_functions AS SELECT function_id, image_id, name, demangled, address, size, file, "
    "line, aliases"
    " FROM functions;"
    "ALTER TABLE segments DROP COLUMN functions;"
    "CREATE TABLE main.segment_functions ("
    " segment_id INTEGER NOT NULL REFERENCES segments ON DELETE CASCADE,"
    " function_id INTEGER NOT NULL, calls INTEGER NOT NULL, PRIMARY KEY (segment_id, function_id)) WITHOUT "
    "ROWID;"
    "INSERT INTO main.segment_functions SELECT * FROM old_counts;"
    "DROP TABLE functions;"
    "CREATE TABLE main.functions ("
    " function_id INTEGER PRIMARY KEY, image_id INTEGER NOT NULL REFERENCES images, name TEXT NOT NULL,"
    " demangled TEXT, address INTEGER NOT NULL, size INTEGER NOT NULL, file TEXT, line INTEGER,"
    " aliases TEXT, UNIQUE (image_id, address, name));"
    "CREATE INDEX main.functions_by_name ON functions(name);"
    "INSERT INTO functions SELECT * FROM old_functions;"
    "DELETE FROM features WHERE name = 'function lists';"
    "DROP TABLE temp.old_counts; DROP TABLE temp.old_functions;"
    "COMMIT;"
    "PRAGMA foreign_keys = ON";

#endif
