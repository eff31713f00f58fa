/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A thread's stream: its segments in order, then the open segment out of the journal. Each segment is copied
 * out of the database before it is decoded, so no read transaction stays open between two calls and a long
 * walk does not keep the recorder's log from being folded.
 */
#include "store/segment/event_iter.h"

#include <stdatomic.h>
#include <zlib.h>

#include "base/error.h"
#include "store/db/db.h"
#include "store/db/store.h"
#include "store/segment/journal.h"

struct event_iter {
    sqlite3 *db;
    int64_t thread_id;
    struct event_range range;
    sqlite3_stmt *find; /* the next segment, see prepare_find */
    uint64_t next_seq;  /* of the next event to give */
    bool ended, in_tail;

    int64_t segment_id;   /* 0: the tail */
    uint64_t behind;      /* the event behind the segment that is being decoded */
    struct bytes payload; /* of the segment */
    struct bytes room;    /* for its packed sections */
    struct journal_tail tail;
    struct segment_parts parts;
    struct segment_decoder *decoder; /* NULL: between two segments */
};

static atomic_uint_fast64_t decoded_segments;

static const char what[] = "cannot read events";

DEFINE_CLEANUP(cleanup_iter, struct event_iter *, event_iter_free)

uint64_t tracestore_decoded_segments(void)
{
    return atomic_load(&decoded_segments);
}

void event_iter_count_decoded(void)
{
    atomic_fetch_add(&decoded_segments, 1);
}

/* ------------------------------------------------------------------------------------------ open, free */

/* The first segment with an event at or behind ?2 that can hold a match. The subselect finds the segment that
 * ?2 lies in, if any, by the index alone. */
static int prepare_find(struct event_iter *iter, struct error *err)
{
    static const char sql[] =
        "SELECT segment_id, first_seq, event_count, last_ns, codec, checksum, data FROM segments"
        " WHERE thread_id = ?1 AND first_seq >= coalesce((SELECT first_seq FROM segments WHERE thread_id = ?1"
        " AND first_seq <= ?2 ORDER BY first_seq DESC LIMIT 1), 0) AND first_seq + event_count > ?2"
        " AND (?3 = 0 OR first_ns IS NULL OR (first_ns <= ?3 AND coalesce(last_ns, ?4) >= ?4))"
        " AND (?5 ISNULL OR segment_names(functions, ?5)) ORDER BY first_seq LIMIT 1";
    const struct function_set *functions = iter->range.functions;
    int code = db_prepare(iter->db, sql, what, &iter->find, err);

    if (!code && functions)
        sqlite3_bind_blob64(iter->find, 5, functions->ids, functions->count * sizeof(*functions->ids),
                            SQLITE_STATIC);
    return code;
}

int event_iter_open_db(struct sqlite3 *db, int64_t thread_id, const struct event_range *range,
                       struct event_iter **ret_iter, struct error *err)
{
    CLEANUP(cleanup_iter) struct event_iter *iter = calloc(1, sizeof(*iter));
    int code;

    if (!iter)
        return error_no_memory(err);
    iter->db = db;
    iter->thread_id = thread_id;
    iter->range = range ? *range : (struct event_range){.last_seq = UINT64_MAX};
    iter->next_seq = iter->range.first_seq;
    code = prepare_find(iter, err);
    if (!code)
        *ret_iter = take_pointer(iter);
    return code;
}

int event_iter_open(struct tracestore *store, int64_t thread_id, uint64_t first_seq,
                    struct event_iter **ret_iter, struct error *err)
{
    const struct event_range range = {.first_seq = first_seq, .last_seq = UINT64_MAX};

    return event_iter_open_db(store->db, thread_id, &range, ret_iter, err);
}

void event_iter_free(struct event_iter *iter)
{
    if (!iter)
        return;
    segment_decoder_free(iter->decoder);
    sqlite3_finalize(iter->find);
    bytes_release(&iter->payload);
    bytes_release(&iter->room);
    journal_tail_release(&iter->tail);
    free(iter);
}

/* ------------------------------------------------------------------------------------------ segments */

/* The segment is of no use: says so, and continues after it. */
static int damaged(struct event_iter *iter, int code, struct error *err)
{
    segment_decoder_free(take_pointer(iter->decoder));
    iter->next_seq = iter->behind;
    if (code == -ENOMEM)
        return error_no_memory(err);
    if (!iter->segment_id) {
        iter->ended = true;
        return error_say(err, code,
                         "cannot read the youngest events of thread %lld: its journal is damaged (run "
                         "'tracectl verify' for details)",
                         (long long)iter->thread_id);
    }
    if (code == -ENOTSUP)
        return error_say(err, code,
                         "cannot read segment %lld of thread %lld: it was written by a newer tracectl "
                         "(read it with that version)",
                         (long long)iter->segment_id, (long long)iter->thread_id);
    return error_say(err, code,
                     "cannot read segment %lld of thread %lld: it is damaged (its events are unknown; "
                     "run 'tracectl verify' for details)",
                     (long long)iter->segment_id, (long long)iter->thread_id);
}

static int start_decoder(struct event_iter *iter, uint64_t first_seq, uint64_t event_count, uint64_t until_ns,
                         struct error *err)
{
    int code = segment_decoder_open(&iter->parts, first_seq, event_count, until_ns, !iter->range.no_sites,
                                    &iter->decoder);

    if (code)
        return damaged(iter, code, err);
    event_iter_count_decoded();
    return 0;
}

/* Whether events between the last segment and this one are gone, told once. When segments that cannot match
 * are left out a gap cannot be seen. */
static bool behind_gap(struct event_iter *iter, uint64_t first_seq, struct error *err)
{
    uint64_t from = iter->next_seq;

    if (first_seq <= from || iter->range.to_ns || iter->range.functions)
        return false;
    iter->next_seq = first_seq;
    error_say(err, -EBADMSG,
              "cannot read events %llu to %llu of thread %lld: their segment is missing (run 'tracectl "
              "verify' for details)",
              (unsigned long long)from, (unsigned long long)first_seq - 1, (long long)iter->thread_id);
    return true;
}

/* Copies the row's payload and starts to decode it. */
static int load_segment(struct event_iter *iter, struct error *err)
{
    const uint8_t *data = sqlite3_column_blob(iter->find, 6);
    size_t size = (size_t)sqlite3_column_bytes(iter->find, 6);
    uint64_t first_seq = (uint64_t)sqlite3_column_int64(iter->find, 1);
    uint64_t event_count = (uint64_t)sqlite3_column_int64(iter->find, 2);
    uint64_t until_ns = (uint64_t)sqlite3_column_int64(iter->find, 3);
    int codec = sqlite3_column_int(iter->find, 4);
    uint32_t checksum = (uint32_t)sqlite3_column_int64(iter->find, 5);
    int code;

    if (behind_gap(iter, first_seq, err)) {
        sqlite3_reset(iter->find);
        return -EBADMSG;
    }
    iter->segment_id = sqlite3_column_int64(iter->find, 0);
    if (first_seq > INT64_MAX - event_count || first_seq + event_count <= iter->next_seq) {
        sqlite3_reset(iter->find);
        return error_say(
            err, -EBADMSG,
            "cannot read the events of thread %lld from %llu on: segment %lld does not hold what the "
            "store's index says (run 'tracectl verify' for details)",
            (long long)iter->thread_id, (unsigned long long)iter->next_seq, (long long)iter->segment_id);
    }
    iter->behind = first_seq + event_count;
    iter->payload.size = 0;
    if (!db_row_is(iter->find, "innNnnb")) {
        sqlite3_reset(iter->find);
        return damaged(iter, -EBADMSG, err);
    }
    code = bytes_add(&iter->payload, data, size);
    sqlite3_reset(iter->find);
    if (code)
        return error_no_memory(err);
    if (crc32(0, iter->payload.data, (uInt)size) != checksum)
        return damaged(iter, -EBADMSG, err);
    code = segment_parse(iter->payload.data, size, &iter->room, &iter->parts);
    if (!code && iter->parts.codec != codec)
        code = -EBADMSG;
    if (code)
        return damaged(iter, code, err);
    return start_decoder(iter, first_seq, event_count, until_ns, err);
}

/* 1: no further segment. */
static int find_segment(struct event_iter *iter, struct error *err)
{
    int result;

    db_bind(iter->find, "iiii", iter->thread_id, (int64_t)iter->next_seq, (int64_t)iter->range.to_ns,
            (int64_t)iter->range.from_ns);
    result = db_row(iter->find, "inn");
    if (result == SQLITE_ROW)
        return load_segment(iter, err);
    sqlite3_reset(iter->find);
    return result == SQLITE_DONE ? 1 : db_fail(iter->db, err, what);
}

/* The event behind all segments of the thread. */
static int segments_end(struct event_iter *iter, uint64_t *ret_seq, struct error *err)
{
    int64_t seq;
    int code = db_number(iter->db, what, &seq, err,
                         "SELECT first_seq + event_count FROM segments WHERE thread_id = ?1"
                         " ORDER BY first_seq DESC LIMIT 1",
                         "i", iter->thread_id);

    if (!code)
        *ret_seq = (uint64_t)seq;
    return code;
}

/* The open segment. 1: there is none, or its events come before those wanted. */
static int load_tail(struct event_iter *iter, struct error *err)
{
    uint64_t first_seq;
    int code = segments_end(iter, &first_seq, err);

    if (code)
        return code;
    iter->in_tail = true;
    iter->segment_id = 0;
    code = journal_read_tail(iter->db, iter->thread_id, first_seq, &iter->tail, err);
    if (code) {
        iter->ended = true;
        return code;
    }
    iter->behind = first_seq + iter->tail.event_count;
    if (!iter->tail.event_count || iter->behind <= iter->next_seq)
        return 1;
    iter->parts = journal_tail_parts(&iter->tail);
    return start_decoder(iter, first_seq, iter->tail.event_count, iter->tail.until_ns, err);
}

/* Finds where to continue. A flush may fold the open segment into a row between the look at
 * the segments and the look at the journal; then the journal has nothing, and the segments are looked at
 * again. */
static int find_next(struct event_iter *iter, struct error *err)
{
    int code = find_segment(iter, err);

    if (code == 1)
        code = load_tail(iter, err);
    if (code == 1) {
        code = find_segment(iter, err);
        iter->in_tail = code == 1;
    }
    return code;
}

/* Between two segments: starts the next one. A failure behind which nothing is known to follow ends the walk,
 * so that who continues after failures gets to an end. */
static int start_next(struct event_iter *iter, struct error *err)
{
    uint64_t from = iter->next_seq;
    int code;

    if (iter->ended || iter->in_tail || iter->next_seq > iter->range.last_seq)
        return 1;
    code = find_next(iter, err);
    iter->ended |= code < 0 && iter->next_seq <= from;
    return code;
}

/* The rest of the segment is not asked for. */
static void leave_segment(struct event_iter *iter)
{
    segment_decoder_free(take_pointer(iter->decoder));
    iter->next_seq = iter->behind;
}

static bool is_in_range(const struct event_range *range, const struct event *event)
{
    if (range->to_ns && (!event->ns || event->ns < range->from_ns))
        return false;
    return event->seq >= range->first_seq;
}

int event_iter_next(struct event_iter *iter, struct event *ret_event, struct error *err)
{
    const struct event_range *range = &iter->range;
    int code;

    for (;;) {
        if (!iter->decoder) {
            code = start_next(iter, err);
            if (code)
                return code;
        }
        code = segment_decoder_next(iter->decoder, ret_event);
        if (code < 0)
            return damaged(iter, code, err);
        if (code == 1 || (range->to_ns && ret_event->ns > range->to_ns)) {
            leave_segment(iter);
            continue;
        }
        if (ret_event->seq > range->last_seq) {
            iter->ended = true;
            segment_decoder_free(take_pointer(iter->decoder));
            return 1;
        }
        if (is_in_range(range, ret_event))
            break;
    }
    iter->next_seq = ret_event->seq + 1;
    return 0;
}

const struct open_call *event_iter_open_calls(const struct event_iter *iter, size_t *ret_count)
{
    return segment_decoder_open_calls(iter->decoder, ret_count);
}

const struct open_call *event_iter_ended_call(const struct event_iter *iter)
{
    return segment_decoder_ended_call(iter->decoder);
}
