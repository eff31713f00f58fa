/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: sqlite_script FILE ROWS
 *
 * Runs the statements of FILE on a database in memory, with :rows bound to ROWS. Linked with SQLite's
 * archive, so that all of it is one program.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static int run_one(sqlite3 *db, const char **script, const char *rows)
{
    sqlite3_stmt *statement;
    int r = sqlite3_prepare_v2(db, *script, -1, &statement, script);

    if (r != SQLITE_OK || !statement)
        return r;
    if (sqlite3_bind_parameter_index(statement, ":rows"))
        sqlite3_bind_int64(statement, sqlite3_bind_parameter_index(statement, ":rows"), atoll(rows));
    while ((r = sqlite3_step(statement)) == SQLITE_ROW)
        for (int i = 0; i < sqlite3_column_count(statement); i++)
            printf("%s\n", (const char *)sqlite3_column_text(statement, i));
    sqlite3_finalize(statement);
    return r == SQLITE_DONE ? SQLITE_OK : r;
}

int main(int argc, char **argv)
{
    static char script[1 << 16];
    const char *next = script;
    FILE *file = argc == 3 ? fopen(argv[1], "r") : NULL;
    sqlite3 *db;

    if (!file || fread(script, 1, sizeof(script) - 1, file) == 0 ||
        sqlite3_open(":memory:", &db) != SQLITE_OK)
        return 2;
    fclose(file);
    while (*next)
        if (run_one(db, &next, argv[2]) != SQLITE_OK) {
            fprintf(stderr, "sqlite_script: %s\n", sqlite3_errmsg(db));
            return 1;
        }
    return sqlite3_close(db) != SQLITE_OK;
}
