/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What all runs of a store share: images, functions, call sites. Each is known by a key; the same key gives
 * the same number again. One that the store has is found there; a new one is a row of the next flush, and if
 * another recorder commits that row before, the flush finds it then (ON CONFLICT).
 */
#include <errno.h>
#include <stdio.h>
#include <uthash.h>

#include "base/error.h"
#include "store/db/aliases.h"
#include "store/db/name_index.h"
#include "store/writer/writer.h"

struct shared_row {
    char *key;
    int64_t number;
    UT_hash_handle hh;
};

void shared_rows_release(struct shared_row **rows)
{
    struct shared_row *row, *next;

    HASH_ITER (hh, *rows, row, next) {
        HASH_DEL(*rows, row);
        free(row->key);
        free(row);
    }
}

/* Its number, 0: not known to this writer. */
static int64_t known_number(const struct trace_writer *writer, const char *key)
{
    struct shared_row *row;

    HASH_FIND_STR(writer->shared, key, row);
    return row ? row->number : 0;
}

/* Takes the key over. -ENOMEM, and then the caller keeps it. */
static int remember(struct trace_writer *writer, char *key, int64_t number)
{
    struct shared_row *row = calloc(1, sizeof(*row));

    if (!row)
        return -ENOMEM;
    row->key = key;
    row->number = number;
    HASH_ADD_KEYPTR(hh, writer->shared, row->key, strlen(row->key), row);
    return 0;
}

/* The id in the first row of a bound statement, 0: none. A store that cannot be read now has none: the row is
 * then found when it is written. */
static int64_t find_id(sqlite3_stmt *bound)
{
    int64_t id = sqlite3_step(bound) == SQLITE_ROW ? sqlite3_column_int64(bound, 0) : 0;

    sqlite3_reset(bound);
    return id;
}

/* Whether the row of that image is in the store for certain, so that others may refer to it. */
static bool is_settled(const struct trace_writer *writer, int64_t image)
{
    return image < writer->numberings[NUMBER_IMAGE].settled;
}

/* A number for the row with that id, or (id 0) for one that is to be written. */
static int take_number(struct trace_writer *writer, enum number_kind kind, int64_t id, int64_t *ret_number)
{
    if (id)
        return numbering_of_row(&writer->numberings[kind], id, ret_number);
    *ret_number = numbering_take(&writer->numberings[kind]);
    return 0;
}

/* ------------------------------------------------------------------------------------------ images */

int trace_writer_image(struct trace_writer *writer, const struct trace_image_description *image,
                       int64_t *ret_image_id, struct error *err)
{
    static const struct catalog_statement insert = {
        .what = "cannot write an image",
        .sql =
            "INSERT INTO images (path, build_id, kind) VALUES (?1, ?2, ?3)"
            " ON CONFLICT (path, build_id, kind) DO UPDATE SET kind = excluded.kind RETURNING image_id",
        .types = "ttt",
        .gives_id = true,
        .gives = NUMBER_IMAGE};
    const char *build_id = image->build_id ? image->build_id : "";
    AUTO_FREE char *key = NULL;
    int64_t id = 0, number;

    if (asprintf(&key, "image %s %s %s", image->kind, build_id, image->path) < 0)
        return error_no_memory(err);
    number = known_number(writer, key);
    if (!number) {
        if (db_number(writer->db, insert.what, &id, NULL,
                      "SELECT image_id FROM images WHERE path = ?1 AND build_id = ?2 AND kind = ?3", "ttt",
                      image->path, build_id, image->kind))
            id = 0;
        if (take_number(writer, NUMBER_IMAGE, id, &number) ||
            (!id &&
             catalog_queue_add(&writer->catalog, &insert, number, image->path, build_id, image->kind)) ||
            remember(writer, key, number))
            return error_no_memory(err);
        take_pointer(key);
    }
    *ret_image_id = number;
    return 0;
}

/* ------------------------------------------------------------------------------------------ functions */

/* A function that two runs have asked for by two of its names has two rows: the same name, but another one to
 * show. */
#define SAME_FUNCTION(image, address, name, shown) \
    "SELECT function_id FROM functions WHERE image_id = " image " AND address = " address \
    " AND name = " name " AND demangled IS " shown

/* 0 with the function's id in the store, or 0. */
static int find_function(struct trace_writer *writer, int64_t image_id,
                         const struct trace_function_description *function, int64_t *ret_id,
                         struct error *err)
{
    int code = 0;

    *ret_id = 0;
    if (!is_settled(writer, image_id))
        return 0;
    if (!writer->find_function)
        code = db_prepare(writer->db, SAME_FUNCTION("?1", "?2", "?3", "?5") " AND name_hash = ?4",
                          "cannot read the functions", &writer->find_function, err);
    if (code)
        return code;
    db_bind(writer->find_function, "iitiT", numbering_id(&writer->numberings[NUMBER_IMAGE], image_id),
            (int64_t)function->address, function->name, (int64_t)function_name_hash(function->name),
            function->demangled);
    *ret_id = find_id(writer->find_function);
    return 0;
}

static int queue_function(struct trace_writer *writer, int64_t image_id, int64_t number,
                          const struct trace_function_description *function)
{
    static const struct catalog_statement insert = {
        .what = "cannot write a function",
        .sql =
            "INSERT INTO functions (image_id, name, demangled, address, size, file, line, name_hash, aliases)"
            " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) RETURNING function_id",
        .find = SAME_FUNCTION("?1", "?4", "?2", "?3") " AND name_hash = ?8 AND (?9 ISNULL OR ?9 NOTNULL)",
        .types = "mtTiiTziT",
        .gives_id = true,
        .gives = NUMBER_FUNCTION};
    AUTO_FREE char *aliases = NULL;

    if (aliases_join(function->aliases, &aliases))
        return -ENOMEM;
    return catalog_queue_add(&writer->catalog, &insert, number, image_id, function->name, function->demangled,
                             (int64_t)function->address, (int64_t)function->size, function->file,
                             (int64_t)function->line, (int64_t)function_name_hash(function->name), aliases);
}

int trace_writer_function(struct trace_writer *writer, int64_t image_id,
                          const struct trace_function_description *function, uint32_t *ret_function_id,
                          struct error *err)
{
    AUTO_FREE char *key = NULL;
    int64_t id, number;
    int code;

    if (asprintf(&key, "function %lld %llx %s %s", (long long)image_id, (unsigned long long)function->address,
                 function->name, function->demangled ? function->demangled : "") < 0)
        return error_no_memory(err);
    number = known_number(writer, key);
    if (!number) {
        code = find_function(writer, image_id, function, &id, err);
        if (code)
            return code;
        if (take_number(writer, NUMBER_FUNCTION, id, &number) ||
            (!id && queue_function(writer, image_id, number, function)) || remember(writer, key, number))
            return error_no_memory(err);
        take_pointer(key);
    }
    if (number >= TRACESTORE_LOST_FUNCTION)
        return error_say(err, -EOVERFLOW,
                         "cannot write a function: too many functions in the store (use "
                         "a new one)");
    *ret_function_id = (uint32_t)number;
    return 0;
}

int trace_writer_functions(struct trace_writer *writer, int64_t image_id,
                           const struct trace_function_description *functions, size_t count,
                           uint32_t *ret_function_ids, struct error *err)
{
    int code = 0;

    for (size_t i = 0; i < count && !code; i++)
        code = trace_writer_function(writer, image_id, &functions[i], &ret_function_ids[i], err);
    return code;
}

/* ------------------------------------------------------------------------------------------ call sites */

static int find_site(struct trace_writer *writer, const struct trace_call_site_description *site,
                     int64_t *ret_id, struct error *err)
{
    int code = 0;

    *ret_id = 0;
    if (!is_settled(writer, site->image_id))
        return 0;
    if (!writer->find_site)
        code = db_prepare(writer->db, "SELECT site_id FROM call_sites WHERE image_id = ?1 AND address = ?2",
                          "cannot read the call sites", &writer->find_site, err);
    if (code)
        return code;
    db_bind(writer->find_site, "ii", numbering_id(&writer->numberings[NUMBER_IMAGE], site->image_id),
            (int64_t)site->address);
    *ret_id = find_id(writer->find_site);
    return 0;
}

static int queue_site(struct trace_writer *writer, int64_t number,
                      const struct trace_call_site_description *site)
{
    static const struct catalog_statement insert = {
        .what = "cannot write a call site",
        .sql =
            "INSERT INTO call_sites (image_id, address, function_id, file, line)"
            " VALUES (?1, ?2, ?3, ?4, ?5)"
            " ON CONFLICT (image_id, address) DO UPDATE SET function_id = coalesce(function_id,"
            " excluded.function_id) RETURNING site_id",
        .types = "mifTz",
        .gives_id = true,
        .gives = NUMBER_SITE};

    return catalog_queue_add(&writer->catalog, &insert, number, site->image_id, (int64_t)site->address,
                             (int64_t)site->function_id, site->file, (int64_t)site->line);
}

int trace_writer_call_site(struct trace_writer *writer, const struct trace_call_site_description *site,
                           uint32_t *ret_site_id, struct error *err)
{
    AUTO_FREE char *key = NULL;
    int64_t id, number;
    int code;

    if (asprintf(&key, "site %lld %llx", (long long)site->image_id, (unsigned long long)site->address) < 0)
        return error_no_memory(err);
    number = known_number(writer, key);
    if (!number) {
        code = find_site(writer, site, &id, err);
        if (code)
            return code;
        if (take_number(writer, NUMBER_SITE, id, &number) || (!id && queue_site(writer, number, site)) ||
            remember(writer, key, number))
            return error_no_memory(err);
        take_pointer(key);
    }
    if (number > UINT32_MAX)
        return error_say(err, -EOVERFLOW,
                         "cannot write a call site: too many call sites in the store "
                         "(use a new one)");
    *ret_site_id = (uint32_t)number;
    return 0;
}
