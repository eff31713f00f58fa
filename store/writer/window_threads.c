/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads of a window: what stands for the events before it, and its segments, moved without decoding their
 * events. */
#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "base/array.h"
#include "base/error.h"
#include "store/segment/census.h"
#include "store/segment/segment_counts.h"
#include "store/writer/window_copy.h"

#define PENDING_BYTES ((size_t)128 << 20) /* so much is one transaction, however long the window */

static const char what[] = "cannot commit the window";

/* ------------------------------------------------------------------------------------------ segments */

/* A segment of the window, or what is open of a thread. */
struct window_segment {
    uint64_t first_seq, event_count, first_ns, last_ns;
    struct segment_parts parts;
    const struct census *functions;
};

/* All functions and sites of a dictionary. */
static int take_dictionary(struct window_copy *commit, const struct section *section, uint32_t least,
                           int (*take)(struct window_copy *commit, uint32_t id))
{
    AUTO_FREE uint32_t *ids = NULL;
    size_t count;
    int code = dictionary_read(section->data, section->size, least, &ids, &count);

    for (size_t i = 0; i < count && !code; i++)
        code = take(commit, ids[i]);
    return code;
}

static int take_named(struct window_copy *commit, const struct segment_parts *parts)
{
    int code = take_dictionary(commit, &parts->sections[SECTION_DICTIONARY], 1, window_take_function);

    if (!code && parts->flags & SEGMENT_CALL_SITES)
        code = take_dictionary(commit, &parts->sections[SECTION_SITE_DICTIONARY], 0, window_take_site);
    return code;
}

/* Where an event of the thread is in the run. -EBADMSG: it is none that is there. */
static int moved_seq(const struct moved_thread *moved, uint64_t seq, uint64_t *ret_seq)
{
    size_t low = 0, high = moved->depth;

    if (seq >= moved->first_seq) {
        *ret_seq = seq - moved->first_seq + moved->head;
        return 0;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (moved->open[middle].seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == moved->depth || moved->open[low].seq != seq)
        return -EBADMSG;
    *ret_seq = moved->open_seqs[low];
    return 0;
}

/* The stack section, whose calls have other numbers now. */
static int move_stack(const struct moved_thread *moved, struct section *section, struct bytes *room)
{
    struct bytes_reader reader = reader_over(section->data, section->size);
    uint64_t seq = 0, before = 0;

    while (reader_left(&reader)) {
        uint64_t function = reader_varint(&reader), now;

        seq += reader_varint(&reader);
        if (reader.failed || moved_seq(moved, seq, &now))
            return -EBADMSG;
        if (bytes_add_varint(room, function) || bytes_add_varint(room, now - before) ||
            bytes_add_varint(room, reader_varint(&reader)))
            return -ENOMEM;
        before = now;
    }
    *section = (struct section){room->data, room->size};
    return reader.failed ? -EBADMSG : 0;
}

static int list_functions(struct window_copy *commit, const struct census *functions,
                          struct closed_segment *closed)
{
    closed->functions = calloc(functions->count + 1, sizeof(*closed->functions));
    if (!closed->functions)
        return -ENOMEM;
    census_list(functions, closed->functions);
    closed->function_count = functions->count;
    for (size_t i = 0; i < functions->count; i++) {
        uint32_t id = closed->functions[i].function;
        int code = window_take_function(commit, id);

        if (code)
            return code;
        if (id != TRACESTORE_LOST_FUNCTION)
            closed->functions[i].function = (uint32_t)id_map_number(&commit->functions, id);
    }
    return 0;
}

static int fill_segment(struct window_copy *commit, const struct moved_thread *moved,
                        const struct window_segment *segment, struct closed_segment *closed)
{
    struct bytes scratch[SECTION_COUNT] = {0};
    AUTO_BYTES stack = {0};
    struct segment_parts parts = segment->parts;
    int code = take_named(commit, &parts);

    if (!code)
        code = list_functions(commit, segment->functions, closed);
    if (!code)
        code = numbering_translate(commit->maps, &parts, scratch);
    if (!code)
        code = move_stack(moved, &parts.sections[SECTION_STACK], &stack);
    if (!code)
        code = segment_assemble(&parts, &closed->payload);
    for (int i = 0; i < SECTION_COUNT; i++)
        bytes_release(&scratch[i]);
    closed->first_seq = segment->first_seq - moved->first_seq + moved->head;
    closed->event_count = segment->event_count;
    closed->first_ns = segment->first_ns;
    closed->last_ns = segment->last_ns;
    closed->codec = segment->parts.codec;
    return code;
}

/* What has gathered goes into the store when it is much. */
static int flush_much(struct window_copy *commit)
{
    return trace_writer_pending_bytes(commit->writer) < PENDING_BYTES
               ? 0
               : trace_writer_flush(commit->writer, commit->to_ns, commit->err);
}

static int copy_segment(struct window_copy *commit, const struct moved_thread *moved,
                        const struct window_segment *segment)
{
    struct closed_segment *closed = calloc(1, sizeof(*closed));
    int code = closed ? fill_segment(commit, moved, segment, closed) : -ENOMEM;

    if (code) {
        closed_segment_free(closed);
        return code == -ENOMEM ? error_no_memory(commit->err) : code;
    }
    writer_queue_segment(moved->thread, closed);
    writer_mark_dirty(moved->thread);
    commit->segments++;
    return flush_much(commit);
}

/* ------------------------------------------------------------------------------------------ the head */

/* A call that was open when the window began, behind `missing` events that are not there. An anchor at or
 * before it is known: it is that of what is missing, or of the call itself where it follows the one before.
 */
static int write_open_call(struct window_copy *commit, const struct moved_thread *moved,
                           const struct open_call *call, uint64_t missing, bool has_time)
{
    uint32_t function = (uint32_t)id_map_number(&commit->functions, call->function),
             site = call->site ? (uint32_t)id_map_number(&commit->sites, call->site) : 0;
    int code = has_time ? thread_writer_anchor(moved->thread, call->ns) : 0;

    if (!code && missing)
        code = thread_writer_lost(moved->thread, commit->from_ns, missing, TRACE_LOSS_WINDOW, commit->err);
    if (!code)
        code = call->assumed ? thread_writer_call_assumed(moved->thread, function, site)
                             : thread_writer_call_from(moved->thread, function, site);
    return code;
}

/* `began_ns`: the anchor before the first event that is kept. */
static int write_head(struct window_copy *commit, struct moved_thread *moved, uint64_t began_ns)
{
    uint64_t next = 0, anchor_ns = 0;
    int code = 0;

    for (size_t i = 0; i < moved->depth && !code; i++) {
        const struct open_call *call = &moved->open[i];
        bool has_time = call->ns > anchor_ns;

        code = window_take_function(commit, call->function);
        if (!code)
            code = window_take_site(commit, call->site);
        if (!code)
            code = write_open_call(commit, moved, call, call->seq - next, has_time);
        anchor_ns = has_time ? call->ns : anchor_ns;
        moved->open_seqs[i] = thread_writer_events(moved->thread) - 1;
        next = call->seq + 1;
    }
    if (!code && moved->first_seq > next) {
        code = began_ns > anchor_ns ? thread_writer_anchor(moved->thread, began_ns) : 0;
        if (!code)
            code = thread_writer_lost(moved->thread, commit->from_ns, moved->first_seq - next,
                                      TRACE_LOSS_WINDOW, commit->err);
    }
    moved->head = thread_writer_events(moved->thread);
    return code;
}

/* The head as a segment, whose events happened before `until_ns`. */
static int close_head(struct moved_thread *moved, uint64_t until_ns)
{
    struct thread_writer *thread = moved->thread;
    int code = thread->builder.event_count ? writer_close_segment(thread) : 0;

    if (!code && thread->unbounded)
        thread->unbounded->last_ns =
            until_ns > thread->builder.anchor_ns ? until_ns : thread->builder.anchor_ns;
    thread->unbounded = NULL;
    return code;
}

/* ------------------------------------------------------------------------------------------ threads */

/* The columns of WINDOW_THREADS_SQL. */
enum { THREAD_ID, PROCESS_ID, TID, LABEL, NAME, STARTED, ENDED, RETURNS };

/* A thread while it is copied. */
struct copying {
    struct window_copy *commit;
    sqlite3_stmt *row; /* of WINDOW_THREADS_SQL */
    struct moved_thread moved;
    struct segment_decoder *decoder; /* of its first segment, which has the open calls; NULL: none yet */
};

static void copying_end(struct copying *copying)
{
    segment_decoder_free(copying->decoder);
    free(copying->moved.open_seqs);
    copying->moved.open = NULL;
    copying->moved.open_seqs = NULL;
    copying->moved.depth = 0;
}

static int enter_thread(struct copying *copying, bool call_sites)
{
    struct window_copy *commit = copying->commit;
    sqlite3_stmt *row = copying->row;
    const struct trace_thread_description description = {
        .process_id = id_map_number(&commit->processes, sqlite3_column_int64(row, PROCESS_ID)),
        .tid = sqlite3_column_int(row, TID),
        .label = window_text(row, LABEL),
        .name = window_text(row, NAME),
        .started_ns = (uint64_t)sqlite3_column_int64(row, STARTED),
        .returns = trace_returns_parse(window_text(row, RETURNS)),
        .call_sites = call_sites,
    };

    return trace_writer_thread(commit->writer, &description, &copying->moved.thread, commit->err);
}

/* What stands before the first segment, from that segment's own beginning. */
static int begin_thread(struct copying *copying, const struct window_segment *first)
{
    struct window_copy *commit = copying->commit;
    struct moved_thread *moved = &copying->moved;
    int code =
        segment_decoder_open(&first->parts, first->first_seq, first->event_count, 0, true, &copying->decoder);

    if (code)
        return code;
    moved->first_seq = first->first_seq;
    moved->open = segment_decoder_open_calls(copying->decoder, &moved->depth);
    moved->open_seqs = calloc(moved->depth + 1, sizeof(*moved->open_seqs));
    if (!moved->open_seqs)
        return -ENOMEM;
    code = enter_thread(copying, first->parts.flags & SEGMENT_CALL_SITES);
    if (!code)
        code = write_head(commit, moved, first->first_ns);
    return code ? code : close_head(moved, first->last_ns);
}

/* A segment, empty ones included: the first says which calls are open. */
static int take_segment(struct copying *copying, const struct window_segment *segment)
{
    int code = copying->decoder ? 0 : begin_thread(copying, segment);

    if (!code && segment->event_count)
        code = copy_segment(copying->commit, &copying->moved, segment);
    return code;
}

/* A segment that cannot be decoded is a gap. */
static int tell_damage(struct copying *copying, uint64_t events)
{
    const struct lost_events lost = {.count = events, .calls = -1, .returns = -1};

    if (!copying->decoder) /* it is before what is kept */
        return 0;
    return writer_queue_loss(copying->commit->writer, copying->moved.thread->number, -1,
                             copying->commit->from_ns, &lost, "damaged")
               ? error_no_memory(copying->commit->err)
               : 0;
}

/* The columns of SEGMENTS_SQL. */
enum { SEGMENT_ID, FIRST_SEQ, EVENT_COUNT, FIRST_NS, LAST_NS, CODEC, CHECKSUM, DATA };
#define SEGMENTS_SQL \
    "SELECT segment_id, first_seq, event_count, first_ns, last_ns, codec, checksum, data FROM segments" \
    " WHERE thread_id = ?1 ORDER BY first_seq"

static int take_row(struct copying *copying, sqlite3_stmt *row, struct segment_counts *counts)
{
    const uint8_t *data = sqlite3_column_blob(row, DATA);
    size_t size = (size_t)sqlite3_column_bytes(row, DATA);
    AUTO_BYTES room = {0};
    AUTO_CENSUS functions = {0};
    struct window_segment segment = {
        .first_seq = (uint64_t)sqlite3_column_int64(row, FIRST_SEQ),
        .event_count = (uint64_t)sqlite3_column_int64(row, EVENT_COUNT),
        .first_ns = (uint64_t)sqlite3_column_int64(row, FIRST_NS),
        .last_ns = (uint64_t)sqlite3_column_int64(row, LAST_NS),
        .functions = &functions,
    };
    int code = crc32(0, data, (uInt)size) == (uint32_t)sqlite3_column_int64(row, CHECKSUM) ? 0 : -EBADMSG;

    if (!code)
        code = segment_parse(data, size, &room, &segment.parts);
    segment_counts_select(counts, sqlite3_column_int64(row, SEGMENT_ID));
    if (!code)
        code = segment_counts_sum(counts, &functions, copying->commit->err);
    if (!code)
        code = take_segment(copying, &segment);
    return code == -EBADMSG || code == -ENOTSUP ? tell_damage(copying, segment.event_count) : code;
}

static int take_rows(struct copying *copying, int64_t thread_id, uint64_t *ret_behind)
{
    struct window_copy *commit = copying->commit;
    AUTO_STATEMENT *row = NULL;
    AUTO_SEGMENT_COUNTS counts = {0};
    int result = SQLITE_ROW, code = db_prepare(commit->db, SEGMENTS_SQL, what, &row, commit->err);

    if (!code)
        code = segment_counts_open(&counts, commit->db, COUNTS_OF_SEGMENT, commit->err);
    if (code)
        return code;
    db_bind(row, "i", thread_id);
    *ret_behind = 0;
    while (!code && (result = db_row(row, "innNNnnb")) == SQLITE_ROW) {
        code = take_row(copying, row, &counts);
        *ret_behind =
            (uint64_t)(sqlite3_column_int64(row, FIRST_SEQ) + sqlite3_column_int64(row, EVENT_COUNT));
    }
    return code || result == SQLITE_DONE ? code : db_fail(commit->db, commit->err, what);
}

/* What is younger than the last segment. */
static int take_tail(struct copying *copying, int64_t thread_id, uint64_t behind)
{
    struct window_copy *commit = copying->commit;
    struct journal_tail tail = {0};
    AUTO_CENSUS functions = {0};
    int code = journal_read_tail(commit->db, thread_id, behind, &tail, commit->err);
    struct window_segment segment = {.parts = journal_tail_parts(&tail),
                                     .first_seq = tail.first_seq,
                                     .event_count = tail.event_count,
                                     .first_ns = tail.first_ns,
                                     .last_ns = tail.until_ns,
                                     .functions = &functions};

    if (!code && tail.event_count)
        code = census_take(&functions, &segment.parts, tail.first_seq, tail.event_count);
    if (!code && tail.event_count)
        code = take_segment(copying, &segment);
    if (code == -EBADMSG || code == -ENOTSUP)
        code = trace_writer_loss(commit->writer, commit->to_ns, 0, "damaged", commit->err);
    journal_tail_release(&tail);
    return code == -ENOMEM ? error_no_memory(commit->err) : code;
}

int window_copy_thread(struct window_copy *commit, sqlite3_stmt *row)
{
    struct copying copying = {
        .commit = commit, .row = row, .moved = {.thread_id = sqlite3_column_int64(row, THREAD_ID)}};
    uint64_t behind = 0;
    int code = take_rows(&copying, copying.moved.thread_id, &behind);

    if (!code)
        code = take_tail(&copying, copying.moved.thread_id, behind);
    copying_end(&copying);
    if (code || !copying.moved.thread)
        return code == -ENOMEM ? error_no_memory(commit->err) : code;
    if (sqlite3_column_type(row, ENDED) != SQLITE_NULL)
        code =
            thread_writer_end(copying.moved.thread, (uint64_t)sqlite3_column_int64(row, ENDED), commit->err);
    if (!code && array_reserve(&commit->threads, &commit->thread_capacity, commit->thread_count + 1))
        code = error_no_memory(commit->err);
    if (!code)
        commit->threads[commit->thread_count++] = copying.moved;
    return code;
}
