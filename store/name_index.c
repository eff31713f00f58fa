/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/name_index.h"

static const char what[] = "cannot index the names of functions";

int name_index_update(sqlite3 *db, struct error *err)
{
    int64_t missing;
    int code = db_number(db, what, &missing, err,
                         "SELECT EXISTS (SELECT 1 FROM functions"
                         " WHERE function_id > (SELECT up_to FROM indexed_functions))",
                         "");

    if (!code && missing)
        code = db_begin(db, what, err);
    if (code || !missing)
        return code;
    code = db_exec(db,
                   "INSERT INTO function_trigrams (rowid, name, demangled)"
                   " SELECT function_id, name, demangled FROM functions"
                   " WHERE function_id > (SELECT up_to FROM indexed_functions) ORDER BY function_id;"
                   "UPDATE indexed_functions SET up_to = (SELECT max(function_id) FROM functions)",
                   what, err);
    if (!code)
        return db_commit(db, what, err);
    db_rollback(db);
    return code;
}

int name_index_before_delete(sqlite3 *db, struct error *err)
{
    return db_exec(db,
                   "INSERT INTO function_trigrams (function_trigrams, rowid, name, demangled)"
                   " SELECT 'delete', function_id, name, demangled FROM main.functions"
                   " WHERE function_id <= (SELECT up_to FROM indexed_functions)"
                   " AND image_id NOT IN (SELECT image_id FROM temp.used_images)",
                   what, err);
}

/* The greatest numbers are given again. */
int name_index_after_delete(sqlite3 *db, struct error *err)
{
    return db_exec(db,
                   "UPDATE indexed_functions SET up_to ="
                   " min(up_to, (SELECT coalesce(max(function_id), 0) FROM functions))",
                   what, err);
}
