/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/db/schema.h"
#include "base/array.h"
#include "store/db/name_index.h"
#include "store/db/schema_additions_sql.h"
#include "store/db/schema_aliases_sql.h"
#include "store/db/schema_budget_sql.h"
#include "store/db/schema_go_sql.h"
#include "store/db/schema_names_sql.h"
#include "store/db/schema_sql.h"
#include "store/db/schema_sync_sql.h"
#include "store/db/store.h"

/* What format version 1 got after its first stores were written, in the order of its coming. */
static const struct addition {
    const char *count; /* a query that gives 0 when the store lacks it */
    const char *sql;   /* adds it */
} additions[] = {
    {"SELECT count(*) FROM pragma_table_info('losses', 'main') WHERE name = 'calls'", schema_additions_sql},
    {"SELECT count(*) FROM main.sqlite_schema WHERE name = 'function_trigrams'", schema_names_sql},
    {"SELECT count(*) FROM main.sqlite_schema WHERE name = 'go_segments'", schema_go_sql},
    {"SELECT count(*) FROM main.sqlite_schema WHERE name = 'sync_segments'", schema_sync_sql},
    {"SELECT count(*) FROM main.sqlite_schema WHERE name = 'budget_plans'", schema_budget_sql},
    {"SELECT count(*) FROM pragma_table_info('functions', 'main') WHERE name = 'aliases'",
     schema_aliases_sql},
};

static int has_addition(sqlite3 *db, const struct addition *addition, bool *ret_has, struct error *err)
{
    int64_t count;
    int code = db_number(db, "cannot read the tables", &count, err, addition->count, "");

    if (!code)
        *ret_has = count > 0;
    return code;
}

int store_has_call_sites(sqlite3 *db, bool *ret_has, struct error *err)
{
    return has_addition(db, &additions[0], ret_has, err);
}

int store_has_name_index(sqlite3 *db, bool *ret_has, struct error *err)
{
    return has_addition(db, &additions[1], ret_has, err);
}

int store_has_go(sqlite3 *db, bool *ret_has, struct error *err)
{
    return has_addition(db, &additions[2], ret_has, err);
}

int store_has_sync(sqlite3 *db, bool *ret_has, struct error *err)
{
    return has_addition(db, &additions[3], ret_has, err);
}

int store_has_budget(sqlite3 *db, bool *ret_has, struct error *err)
{
    return has_addition(db, &additions[4], ret_has, err);
}

int store_has_aliases(sqlite3 *db, bool *ret_has, struct error *err)
{
    return has_addition(db, &additions[5], ret_has, err);
}

/* Inside a transaction. */
static int make_additions(sqlite3 *db, const char *what, struct error *err)
{
    int code = 0;

    for (size_t i = 0; i < ARRAY_SIZE(additions) && !code; i++) {
        bool has = false;

        code = has_addition(db, &additions[i], &has, err);
        if (!code && !has)
            code = db_exec(db, additions[i].sql, what, err);
    }
    return code;
}

/* Makes the tables in an empty database, or what an older store lacks, whatever else tries to at the same
 * time. */
static int make_tables(sqlite3 *db, struct error *err)
{
    static const char what[] = "cannot make tables";
    int64_t tables;
    int code = db_begin(db, what, err);

    if (code)
        return code;
    /* Another process may have been faster. */
    code = db_number(db, what, &tables, err, "SELECT count(*) FROM sqlite_schema", "");
    if (!code && !tables)
        code = db_exec(db, schema_sql, what, err);
    if (!code && !tables)
        code = db_exec(db, "PRAGMA application_id = 0x74726163; PRAGMA user_version = 1", what, err);
    if (!code)
        code = make_additions(db, what, err);
    if (!code)
        return db_commit(db, what, err);
    db_rollback(db);
    return code;
}

int schema_make(sqlite3 *db, struct error *err)
{
    int64_t tables;
    int code = db_number(db, "cannot read", &tables, err, "SELECT count(*) FROM sqlite_schema", "");

    if (code || tables)
        return code;
    /* auto_vacuum only takes before the first table. Another process may be making the same store: it has a
     * page before it has tables. */
    code =
        db_exec(db, "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL", "cannot make tables", err);
    return code ? code : make_tables(db, err);
}

int schema_complete(sqlite3 *db, struct error *err)
{
    bool complete = true;
    int code = 0;

    for (size_t i = 0; i < ARRAY_SIZE(additions) && !code && complete; i++)
        code = has_addition(db, &additions[i], &complete, err);
    if (!code && !complete)
        code = make_tables(db, err);
    return code || complete ? code : name_index_update(db, err);
}
