/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/streams/process_iter.h"

#include <errno.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "store/db/store.h"
#include "store/segment/event_iter.h"
#include "store/streams/process_codec.h"
#include "store/streams/process_streams.h"

enum { SEGMENT_ID, FIRST_SEQ, EVENT_COUNT, CODEC, CHECKSUM, DATA };

/* The first segment with an event at or behind ?3 that may be in the range of times. */
#define FIND_SQL \
    "SELECT segment_id, first_seq, event_count, codec, checksum, data FROM main.process_segments" \
    " WHERE process_id = ?1 AND stream = ?2 AND first_seq >= coalesce((SELECT first_seq" \
    " FROM main.process_segments WHERE process_id = ?1 AND stream = ?2 AND first_seq <= ?3" \
    " ORDER BY first_seq DESC LIMIT 1), 0)" \
    " AND first_seq + event_count > ?3 AND last_ns >= ?4 AND first_ns <= ?5 ORDER BY first_seq LIMIT 1"

struct process_event_iter {
    sqlite3 *db;
    enum process_stream stream;
    const char *events; /* what they are called in messages */
    int64_t process_id;
    struct process_range range;
    sqlite3_stmt *find;
    uint64_t next_seq; /* of the next event to give */
    bool ended;

    int64_t segment_id;
    uint64_t seq, behind;            /* of the decoder's next event; of the event behind the segment */
    struct process_decoder *decoder; /* NULL: between two segments */
};

DEFINE_CLEANUP(cleanup_iter, struct process_event_iter *, process_event_iter_free)

int process_event_iter_open_db(sqlite3 *db, enum process_stream stream, int64_t process_id,
                               const struct process_range *range, struct process_event_iter **ret_iter,
                               struct error *err)
{
    CLEANUP(cleanup_iter) struct process_event_iter *iter = calloc(1, sizeof(*iter));
    int code;

    if (!iter)
        return error_no_memory(err);
    *iter = (struct process_event_iter){.db = db,
                                        .stream = stream,
                                        .events = process_stream_traits(stream)->events,
                                        .process_id = process_id,
                                        .range = *range,
                                        .next_seq = range->first_seq};
    code = db_prepare(db, FIND_SQL, "cannot read events", &iter->find, err);
    if (!code)
        *ret_iter = take_pointer(iter);
    return code;
}

int process_event_iter_open(struct tracestore *store, enum process_stream stream, int64_t process_id,
                            struct process_event_iter **ret_iter, struct error *err)
{
    return process_event_iter_open_db(store->db, stream, process_id, &PROCESS_RANGE_ALL, ret_iter, err);
}

static void free_decoder(struct process_event_iter *iter)
{
    process_decoder_free(take_pointer(iter->decoder));
}

void process_event_iter_free(struct process_event_iter *iter)
{
    if (!iter)
        return;
    free_decoder(iter);
    sqlite3_finalize(iter->find);
    free(iter);
}

uint64_t process_event_iter_seq(const struct process_event_iter *iter)
{
    return iter->next_seq - 1;
}

/* The segment cannot be used: reports it and continues behind it. */
static int damaged(struct process_event_iter *iter, int code, struct error *err)
{
    free_decoder(iter);
    iter->next_seq = iter->behind;
    if (code == -ENOMEM)
        return error_no_memory(err);
    return error_say(err, code, "cannot read segment %lld of the %s of process %lld: %s",
                     (long long)iter->segment_id, iter->events, (long long)iter->process_id,
                     code == -ENOTSUP
                         ? "it was written by a newer tracectl (read it with that version)"
                         : "it is damaged (its events are unknown; run 'tracectl verify' for details)");
}

/* Whether events before the segment are missing, reported once. What a range of times excludes is no gap. */
static bool behind_gap(struct process_event_iter *iter, uint64_t first_seq, struct error *err)
{
    uint64_t from = iter->next_seq;

    if (first_seq <= from || iter->range.from_ns)
        return false;
    iter->next_seq = first_seq;
    error_say(err, -EBADMSG,
              "cannot read %s %llu to %llu of process %lld: their segment is missing (run 'tracectl "
              "verify' for details)",
              iter->events, (unsigned long long)from, (unsigned long long)first_seq - 1,
              (long long)iter->process_id);
    return true;
}

/* Unpacks the row that `find` stands at. */
static int load_segment(struct process_event_iter *iter, struct error *err)
{
    const uint8_t *data = sqlite3_column_blob(iter->find, DATA);
    size_t size = (size_t)sqlite3_column_bytes(iter->find, DATA);
    uint64_t first_seq = (uint64_t)sqlite3_column_int64(iter->find, FIRST_SEQ);
    uint64_t event_count = (uint64_t)sqlite3_column_int64(iter->find, EVENT_COUNT);
    int code;

    if (behind_gap(iter, first_seq, err))
        return -EBADMSG;
    iter->segment_id = sqlite3_column_int64(iter->find, SEGMENT_ID);
    if (first_seq > INT64_MAX - event_count || first_seq + event_count <= iter->next_seq)
        return error_say(
            err, -EBADMSG,
            "cannot read the %s of process %lld from %llu on: segment %lld does not hold what the "
            "store's index says (run 'tracectl verify' for details)",
            iter->events, (long long)iter->process_id, (unsigned long long)iter->next_seq,
            (long long)iter->segment_id);
    iter->seq = first_seq;
    iter->behind = first_seq + event_count;
    if (!db_row_is(iter->find, "innnnb") ||
        crc32(0, data, (uInt)size) != (uint32_t)sqlite3_column_int64(iter->find, CHECKSUM))
        return damaged(iter, -EBADMSG, err);
    code = process_decoder_open(iter->stream, data, size, event_count, &iter->decoder);
    if (code)
        return damaged(iter, code, err);
    event_iter_count_decoded();
    return 0;
}

/* 1: no further segment. A failure behind which nothing is known to follow ends the walk. */
static int start_next(struct process_event_iter *iter, struct error *err)
{
    uint64_t from = iter->next_seq;
    int result, code;

    if (iter->ended || iter->next_seq > iter->range.last_seq)
        return 1;
    db_bind(iter->find, "iiiii", iter->process_id, (int64_t)iter->stream, (int64_t)iter->next_seq,
            (int64_t)iter->range.from_ns, (int64_t)iter->range.to_ns);
    result = db_row(iter->find, "inn");
    code = result == SQLITE_ROW    ? load_segment(iter, err)
           : result == SQLITE_DONE ? 1
                                   : db_fail(iter->db, err, "cannot read events");
    sqlite3_reset(iter->find);
    iter->ended |= code < 0 && iter->next_seq <= from;
    return code;
}

/* The next event of the segment, wanted or not. 1: it is at its end. */
static int step(struct process_event_iter *iter, struct process_event *event, struct error *err)
{
    int code = process_decoder_next(iter->decoder, event);

    if (code < 0)
        return damaged(iter, code, err);
    if (code) {
        free_decoder(iter);
        iter->next_seq = iter->behind;
        return 1;
    }
    iter->seq++;
    return 0;
}

int process_event_iter_next(struct process_event_iter *iter, struct process_event *ret_event,
                            struct error *err)
{
    const struct process_range *range = &iter->range;
    int code;

    for (;;) {
        code = iter->decoder ? 0 : start_next(iter, err);
        if (code)
            return code;
        code = step(iter, ret_event, err);
        if (code < 0)
            return code;
        if (code || iter->seq <= iter->next_seq || ret_event->ns < range->from_ns)
            continue;
        if (iter->seq - 1 > range->last_seq || ret_event->ns > range->to_ns) {
            free_decoder(iter);
            iter->ended = true;
            return 1;
        }
        iter->next_seq = iter->seq;
        return 0;
    }
}
