/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/sql/vtab_table.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

struct connected_table {
    sqlite3_vtab base;
    void *of;
};

int vtab_connect_to(sqlite3 *db, void *of, const char *declaration, sqlite3_vtab **ret_table)
{
    struct connected_table *table;
    int r = sqlite3_declare_vtab(db, declaration);

    if (r != SQLITE_OK)
        return r;
    table = sqlite3_malloc64(sizeof(*table));
    if (!table)
        return SQLITE_NOMEM;
    *table = (struct connected_table){.of = of};
    *ret_table = &table->base;
    return SQLITE_OK;
}

int vtab_connect(sqlite3 *db, const char *declaration, sqlite3_vtab **ret_table)
{
    return vtab_connect_to(db, db, declaration, ret_table);
}

int vtab_disconnect(sqlite3_vtab *table)
{
    sqlite3_free(table);
    return SQLITE_OK;
}

void *vtab_of(sqlite3_vtab *table)
{
    return ((struct connected_table *)table)->of;
}

int vtab_fail(sqlite3_vtab *table, int code, const struct error *err)
{
    if (code == -ENOMEM)
        return SQLITE_NOMEM;
    sqlite3_free(table->zErrMsg);
    table->zErrMsg = sqlite3_mprintf("%s", err->message);
    return code == -EBADMSG ? SQLITE_CORRUPT : SQLITE_ERROR;
}

int vtab_open(size_t size, sqlite3_vtab_cursor **ret_cursor)
{
    struct vtab_cursor *cursor = sqlite3_malloc64(size);

    if (!cursor)
        return SQLITE_NOMEM;
    memset(cursor, 0, size);
    cursor->end = true;
    *ret_cursor = &cursor->base;
    return SQLITE_OK;
}

int vtab_eof(sqlite3_vtab_cursor *cursor)
{
    return ((struct vtab_cursor *)cursor)->end;
}

int vtab_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret_row)
{
    *ret_row = ((struct vtab_cursor *)cursor)->row;
    return SQLITE_OK;
}
