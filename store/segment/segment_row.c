/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/segment/segment_row.h"

#include <zlib.h>

#include "store/segment/call_list.h"
#include "store/segment/segment_counts.h"

int segment_inserter_open(struct segment_inserter *inserter, sqlite3 *db, const char *what, struct error *err)
{
#define COLUMNS \
    "run_id, thread_id, first_seq, event_count, first_ns, last_ns, codec, checksum, raw_bytes, data"
    bool packed = store_has_packed_lists(db);
    int code = db_prepare(db,
                          packed ? "INSERT INTO segments (" COLUMNS
                                   ", functions)"
                                   " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
                                 : "INSERT INTO segments (" COLUMNS
                                   ")"
                                   " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                          what, &inserter->segment, err);

    inserter->db = db;
    if (!code && !packed)
        code = db_prepare(db, "INSERT INTO main.segment_functions VALUES (?1, ?2, ?3)", what,
                          &inserter->function, err);
    return code;
}

void segment_inserter_close(struct segment_inserter *inserter)
{
    sqlite3_finalize(inserter->segment);
    sqlite3_finalize(inserter->function);
    *inserter = (struct segment_inserter){0};
}

static int insert_functions(struct segment_inserter *inserter, const struct segment_row *row,
                            const char *what, struct error *err)
{
    int64_t segment_id = sqlite3_last_insert_rowid(inserter->db);
    int code = 0;

    for (size_t i = 0; i < row->function_count && !code; i++) {
        db_bind(inserter->function, "iii", segment_id, (int64_t)row->functions[i].function,
                (int64_t)row->functions[i].calls);
        code = db_step(inserter->db, inserter->function, what, err);
    }
    return code;
}

int segment_insert(struct segment_inserter *inserter, const struct segment_row *row, const char *what,
                   struct error *err)
{
    AUTO_BYTES list = {0};
    int code;

    if (!inserter->function && call_list_pack(row->functions, row->function_count, &list))
        return error_no_memory(err);
    db_bind(inserter->segment, "iiiizziiib", row->run_id, row->thread_id, (int64_t)row->first_seq,
            (int64_t)row->event_count, (int64_t)row->first_ns, (int64_t)(row->first_ns ? row->last_ns : 0),
            (int64_t)row->codec, (int64_t)crc32(0, row->payload.data, (uInt)row->payload.size),
            (int64_t)(2 * row->event_count), (const void *)row->payload.data, row->payload.size);
    if (!inserter->function)
        sqlite3_bind_blob64(inserter->segment, 11, list.data, list.size, SQLITE_STATIC);
    code = db_step(inserter->db, inserter->segment, what, err);
    if (!inserter->function)
        sqlite3_bind_null(inserter->segment, 11);
    else if (!code)
        code = insert_functions(inserter, row, what, err);
    return code;
}
