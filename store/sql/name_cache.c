/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/sql/name_cache.h"

#include <string.h>

/* Reset at once: a statement that is not at its end would hold its snapshot. */
static int read_name(struct name_cache *cache, sqlite3 *db, uint32_t function, char **ret_name)
{
    const char *text;
    int r = SQLITE_OK;

    if (!cache->find)
        r = sqlite3_prepare_v2(db,
                               "SELECT coalesce(demangled, name) FROM main.functions WHERE function_id = ?1",
                               -1, &cache->find, NULL);
    if (r != SQLITE_OK)
        return r;
    sqlite3_bind_int64(cache->find, 1, function);
    r = sqlite3_step(cache->find);
    text = r == SQLITE_ROW ? (const char *)sqlite3_column_text(cache->find, 0) : NULL;
    *ret_name = text ? sqlite3_mprintf("%s", text) : NULL;
    if (text && !*ret_name)
        r = SQLITE_NOMEM;
    sqlite3_reset(cache->find);
    return r == SQLITE_ROW || r == SQLITE_DONE ? SQLITE_OK : r;
}

int name_cache_result(struct name_cache *cache, sqlite3 *db, uint32_t function, sqlite3_context *context)
{
    unsigned slot = function % NAME_CACHE_SIZE;
    char *name = NULL;
    int r;

    if (cache->names[slot].function != function) {
        r = read_name(cache, db, function, &name);
        if (r != SQLITE_OK)
            return r;
        sqlite3_free(cache->names[slot].name);
        cache->names[slot].function = function;
        cache->names[slot].name = name;
    }
    if (cache->names[slot].name)
        sqlite3_result_text(context, cache->names[slot].name, -1, SQLITE_TRANSIENT);
    return SQLITE_OK;
}

void name_cache_release(struct name_cache *cache)
{
    sqlite3_finalize(cache->find);
    for (unsigned i = 0; i < NAME_CACHE_SIZE; i++)
        sqlite3_free(cache->names[i].name);
    memset(cache, 0, sizeof(*cache));
}
