/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a window's catalog has, in the catalog of the store that it is committed to. */
#include <errno.h>

#include "base/error.h"
#include "store/db/aliases.h"
#include "store/writer/window_copy.h"

static const char what[] = "cannot commit the window";

/* The row of the window's catalog with that id. -EIO: there is none. */
static int find_row(struct window_copy *commit, const char *sql, const char *types, int64_t id,
                    sqlite3_stmt **ret_row)
{
    int result, code = db_prepare(commit->db, sql, what, ret_row, commit->err);

    if (code)
        return code;
    db_bind(*ret_row, "i", id);
    result = db_row(*ret_row, types);
    if (result == SQLITE_ROW)
        return 0;
    return result == SQLITE_DONE ? error_say(commit->err, -EIO, "%s: its catalog is not complete", what)
                                 : db_fail(commit->db, commit->err, what);
}

static int take_image(struct window_copy *commit, int64_t id, int64_t *ret_number)
{
    AUTO_STATEMENT *row = NULL;
    int code = 0;

    *ret_number = id_map_number(&commit->images, id);
    if (*ret_number)
        return 0;
    code = find_row(commit, "SELECT path, build_id, kind FROM images WHERE image_id = ?1", "ttt", id, &row);
    if (!code)
        code = trace_writer_image(
            commit->writer,
            &(struct trace_image_description){window_text(row, 0), window_text(row, 1), window_text(row, 2)},
            ret_number, commit->err);
    return code || !id_map_set(&commit->images, id, *ret_number) ? code : error_no_memory(commit->err);
}

int window_take_function(struct window_copy *commit, uint32_t id)
{
    AUTO_STATEMENT *row = NULL;
    AUTO_ALIASES char **aliases = NULL;
    struct trace_function_description function;
    int64_t image;
    uint32_t number;
    int code;

    if (id == TRACESTORE_LOST_FUNCTION || id_map_number(&commit->functions, id))
        return 0;
    code = find_row(commit,
                    "SELECT image_id, name, demangled, address, size, file, line, aliases FROM functions"
                    " WHERE function_id = ?1",
                    "itTiiTIT", id, &row);
    if (!code)
        code = take_image(commit, sqlite3_column_int64(row, 0), &image);
    if (code)
        return code;
    function = (struct trace_function_description){
        .name = window_text(row, 1),
        .demangled = window_text(row, 2),
        .address = (uint64_t)sqlite3_column_int64(row, 3),
        .size = (uint64_t)sqlite3_column_int64(row, 4),
        .file = window_text(row, 5),
        .line = sqlite3_column_int(row, 6),
    };
    if (aliases_split((const char *)sqlite3_column_text(row, 7), &aliases))
        return error_no_memory(commit->err);
    function.aliases = aliases;
    code = trace_writer_function(commit->writer, image, &function, &number, commit->err);
    if (code)
        return code;
    return id_map_set(&commit->functions, id, number) ||
                   numbering_set(&commit->maps[NUMBER_FUNCTION], id, number)
               ? error_no_memory(commit->err)
               : 0;
}

int window_take_site(struct window_copy *commit, uint32_t id)
{
    AUTO_STATEMENT *row = NULL;
    struct trace_call_site_description site = {0};
    uint32_t function, number;
    int code;

    if (!id || id_map_number(&commit->sites, id))
        return 0;
    code = find_row(commit,
                    "SELECT image_id, address, function_id, file, line FROM call_sites WHERE site_id = ?1",
                    "iiITI", id, &row);
    if (!code)
        code = take_image(commit, sqlite3_column_int64(row, 0), &site.image_id);
    if (code)
        return code;
    function = (uint32_t)sqlite3_column_int64(row, 2);
    code = function ? window_take_function(commit, function) : 0;
    if (code)
        return code;
    site.address = (uint64_t)sqlite3_column_int64(row, 1);
    site.function_id = (uint32_t)id_map_number(&commit->functions, function);
    site.file = window_text(row, 3);
    site.line = sqlite3_column_int(row, 4);
    code = trace_writer_call_site(commit->writer, &site, &number, commit->err);
    if (code)
        return code;
    return id_map_set(&commit->sites, id, number) || numbering_set(&commit->maps[NUMBER_SITE], id, number)
               ? error_no_memory(commit->err)
               : 0;
}
