/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/db/schema.h"
#include "store/db/schema_sql.h"

static const char what[] = "cannot create tables";

static int count_tables(sqlite3 *db, int64_t *ret_tables, struct error *err)
{
    return db_number(db, what, ret_tables, err, "SELECT count(*) FROM sqlite_schema", "");
}

int schema_make(sqlite3 *db, struct error *err)
{
    int64_t tables;
    int code = count_tables(db, &tables, err);

    if (code || tables)
        return code;
    /* auto_vacuum only takes before the first table. Another process may be making the same store: it has a
     * page before it has tables. */
    code = db_exec(db, "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL", what, err);
    if (!code)
        code = db_begin(db, what, err);
    if (code)
        return code;
    code = count_tables(db, &tables, err); /* another process may have been faster */
    if (!code && !tables)
        code = db_exec(db, schema_sql, what, err);
    if (!code)
        return db_commit(db, what, err);
    db_rollback(db);
    return code;
}
