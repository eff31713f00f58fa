/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/segment/segment_row.h"

#include <zlib.h>

#include "base/error.h"
#include "store/segment/call_list.h"

int segment_inserter_open(struct segment_inserter *inserter, sqlite3 *db, const char *what, struct error *err)
{
    static const char sql[] =
        "INSERT INTO segments (run_id, thread_id, first_seq, event_count, first_ns, last_ns, codec, checksum,"
        " raw_bytes, data, functions) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";

    inserter->db = db;
    return db_prepare(db, sql, what, &inserter->segment, err);
}

void segment_inserter_close(struct segment_inserter *inserter)
{
    sqlite3_finalize(inserter->segment);
    *inserter = (struct segment_inserter){0};
}

int segment_insert(struct segment_inserter *inserter, const struct segment_row *row, const char *what,
                   struct error *err)
{
    AUTO_BYTES list = {0};
    int code;

    if (call_list_pack(row->functions, row->function_count, &list))
        return error_no_memory(err);
    db_bind(inserter->segment, "iiiizziiibb", row->run_id, row->thread_id, (int64_t)row->first_seq,
            (int64_t)row->event_count, (int64_t)row->first_ns, (int64_t)(row->first_ns ? row->last_ns : 0),
            (int64_t)row->codec, (int64_t)crc32(0, row->payload.data, (uInt)row->payload.size),
            (int64_t)(2 * row->event_count), (const void *)row->payload.data, row->payload.size,
            (const void *)list.data, list.size);
    code = db_step(inserter->db, inserter->segment, what, err);
    sqlite3_bind_null(inserter->segment, 11); /* the list ends with this function */
    return code;
}
