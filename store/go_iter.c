/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process's goroutine events, segment by segment. The last segment of a process that is being recorded
 * grows between two looks at it: then what is new is read out of the row as it is now. As event_iter.c does,
 * each segment is copied, so that no read transaction stays open.
 */
#include <errno.h>
#include <zlib.h>

#include "store/db.h"
#include "store/event_iter.h"
#include "store/go_codec.h"
#include "store/go_tables.h"
#include "store/store.h"

struct go_event_iter {
    sqlite3 *db;
    int64_t process_id;
    struct go_range range;
    sqlite3_stmt *find; /* NULL: the store has no goroutine events */
    uint64_t next_seq;  /* of the next event to give */
    bool ended;

    int64_t segment_id;
    uint64_t seq, behind;       /* of the decoder's next event; of the event behind the segment */
    struct go_decoder *decoder; /* NULL: between two segments */
};

static const char what[] = "cannot read goroutine events";

DEFINE_CLEANUP(cleanup_iter, struct go_event_iter *, go_event_iter_free)

/* ------------------------------------------------------------------------------------------ open, free */

/* The first segment with an event at or behind ?2 that may be in the range of times. */
#define FIND_SQL \
    "SELECT segment_id, first_seq, event_count, codec, checksum, data FROM main.go_segments" \
    " WHERE process_id = ?1 AND first_seq >= coalesce((SELECT first_seq FROM main.go_segments" \
    " WHERE process_id = ?1 AND first_seq <= ?2 ORDER BY first_seq DESC LIMIT 1), 0)" \
    " AND first_seq + event_count > ?2 AND last_ns >= ?3 AND first_ns <= ?4 ORDER BY first_seq LIMIT 1"
enum { SEGMENT_ID, FIRST_SEQ, EVENT_COUNT, CODEC, CHECKSUM, DATA };

int go_event_iter_open_db(sqlite3 *db, int64_t process_id, const struct go_range *range,
                          struct go_event_iter **ret_iter, struct error *err)
{
    CLEANUP(cleanup_iter) struct go_event_iter *iter = calloc(1, sizeof(*iter));
    bool has_go = false;
    int code;

    if (!iter)
        return error_no_memory(err);
    iter->db = db;
    iter->process_id = process_id;
    iter->range = *range;
    iter->next_seq = range->first_seq;
    code = store_has_go(db, &has_go, err);
    if (!code && has_go)
        code = db_prepare(db, FIND_SQL, what, &iter->find, err);
    if (!code)
        *ret_iter = take_pointer(iter);
    return code;
}

int go_event_iter_open(struct tracestore *store, int64_t process_id, struct go_event_iter **ret_iter,
                       struct error *err)
{
    return go_event_iter_open_db(store->db, process_id, &GO_RANGE_ALL, ret_iter, err);
}

void go_event_iter_free(struct go_event_iter *iter)
{
    if (!iter)
        return;
    go_decoder_free(iter->decoder);
    sqlite3_finalize(iter->find);
    free(iter);
}

uint64_t go_event_iter_seq(const struct go_event_iter *iter)
{
    return iter->next_seq - 1;
}

/* ------------------------------------------------------------------------------------------ segments */

/* The segment is of no use: says so, and goes on behind it. */
static int damaged(struct go_event_iter *iter, int code, struct error *err)
{
    go_decoder_free(take_pointer(iter->decoder));
    iter->ended = iter->behind <= iter->next_seq || iter->behind > INT64_MAX;
    iter->next_seq = iter->behind;
    if (code == -ENOMEM)
        return error_no_memory(err);
    return error_say(err, code, "cannot read segment %lld of the goroutines of process %lld: %s",
                     (long long)iter->segment_id, (long long)iter->process_id,
                     code == -ENOTSUP
                         ? "it was written by a newer tracectl (read it with that version)"
                         : "it is damaged (its events are unknown; see what 'tracectl verify' says)");
}

/* Whether events before the segment are gone, told once. What a range of times leaves out is no gap. */
static bool behind_gap(struct go_event_iter *iter, uint64_t first_seq, struct error *err)
{
    uint64_t from = iter->next_seq;

    if (first_seq <= from || iter->range.from_ns)
        return false;
    iter->next_seq = first_seq;
    error_say(err, -EBADMSG,
              "cannot read goroutine events %llu to %llu of process %lld: their segment is missing (see what "
              "'tracectl verify' says)",
              (unsigned long long)from, (unsigned long long)first_seq - 1, (long long)iter->process_id);
    return true;
}

/* Unpacks the row that `find` stands at. */
static int load_segment(struct go_event_iter *iter, struct error *err)
{
    const uint8_t *data = sqlite3_column_blob(iter->find, DATA);
    size_t size = (size_t)sqlite3_column_bytes(iter->find, DATA);
    uint64_t first_seq = (uint64_t)sqlite3_column_int64(iter->find, FIRST_SEQ);
    uint64_t event_count = (uint64_t)sqlite3_column_int64(iter->find, EVENT_COUNT);
    int code;

    if (behind_gap(iter, first_seq, err))
        return -EBADMSG;
    iter->segment_id = sqlite3_column_int64(iter->find, SEGMENT_ID);
    iter->seq = first_seq;
    iter->behind = first_seq + event_count;
    if (crc32(0, data, (uInt)size) != (uint32_t)sqlite3_column_int64(iter->find, CHECKSUM))
        return damaged(iter, -EBADMSG, err);
    code = go_decoder_open(data, size, event_count, &iter->decoder);
    if (code)
        return damaged(iter, code, err);
    event_iter_count_decoded();
    return 0;
}

/* 1: no further segment. */
static int start_next(struct go_event_iter *iter, struct error *err)
{
    int result, code;

    if (!iter->find || iter->ended || iter->next_seq > iter->range.last_seq)
        return 1;
    db_bind(iter->find, "iiii", iter->process_id, (int64_t)iter->next_seq, (int64_t)iter->range.from_ns,
            (int64_t)iter->range.to_ns);
    result = sqlite3_step(iter->find);
    code = result == SQLITE_ROW    ? load_segment(iter, err)
           : result == SQLITE_DONE ? 1
                                   : db_fail(iter->db, err, what);
    sqlite3_reset(iter->find);
    return code;
}

/* The next event of the segment, wanted or not. 1: it is at its end. */
static int step(struct go_event_iter *iter, struct go_event *event, struct error *err)
{
    int code = go_decoder_next(iter->decoder, event);

    if (code < 0)
        return damaged(iter, code, err);
    if (code) {
        go_decoder_free(take_pointer(iter->decoder));
        iter->next_seq = iter->behind;
        return 1;
    }
    iter->seq++;
    return 0;
}

int go_event_iter_next(struct go_event_iter *iter, struct go_event *ret_event, struct error *err)
{
    const struct go_range *range = &iter->range;
    struct go_event event;
    int code;

    for (;;) {
        code = iter->decoder ? 0 : start_next(iter, err);
        if (code)
            return code;
        code = step(iter, &event, err);
        if (code < 0)
            return code;
        if (code || iter->seq <= iter->next_seq || event.ns < range->from_ns)
            continue;
        if (iter->seq - 1 > range->last_seq || event.ns > range->to_ns) {
            go_decoder_free(take_pointer(iter->decoder));
            iter->ended = true;
            return 1;
        }
        iter->next_seq = iter->seq;
        *ret_event = event;
        return 0;
    }
}
