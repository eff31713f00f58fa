/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/db/name_index.h"

#include <string.h>
#include <zlib.h>

static const char what[] = "cannot index the names of functions";

uint32_t function_name_hash(const char *name)
{
    return (uint32_t)crc32(0, (const uint8_t *)name, (uInt)strlen(name)) & 0x7fffff;
}

int name_index_build(sqlite3 *db, struct error *err)
{
    int code = db_begin(db, what, err);

    if (code)
        return code;
    code =
        db_exec(db,
                "INSERT INTO function_trigrams (rowid, name, demangled)"
                " SELECT function_id, name, demangled FROM functions"
                " WHERE function_id > (SELECT up_to FROM indexed_functions) ORDER BY function_id;"
                "UPDATE indexed_functions SET up_to = (SELECT coalesce(max(function_id), 0) FROM functions)",
                what, err);
    if (!code)
        return db_commit(db, what, err);
    db_rollback(db);
    return code;
}

int name_index_update(sqlite3 *db, struct error *err)
{
    int64_t missing;
    int code = db_number(db, what, &missing, err,
                         "SELECT count(*) FROM (SELECT 1 FROM functions"
                         " WHERE function_id > (SELECT up_to FROM indexed_functions) LIMIT ?1)",
                         "i", (int64_t)NAME_INDEX_STEP);

    return code || missing < NAME_INDEX_STEP ? code : name_index_build(db, err);
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
