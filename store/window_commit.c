/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From a window into a store. Numbers of the window's catalog become numbers of the writer's. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#include "base/array.h"
#include "store/census.h"
#include "store/segment_counts.h"
#include "store/window.h"
#include "store/writer.h"

#define PENDING_BYTES ((size_t)128 << 20) /* so much is one transaction, however long the window */

static const char what[] = "cannot commit the window";

/* The writer's numbers, by id in the window: 0 is none yet. */
struct renumbering {
    int64_t *numbers;
    size_t count, capacity;
};

/* A thread of the window, and where its events are in the run. */
struct moved_thread {
    int64_t thread_id; /* in the window */
    struct thread_writer *thread;
    uint64_t first_seq;           /* of the first event that is kept */
    uint64_t head;                /* events that stand for those before it */
    const struct open_call *open; /* the calls among these, while the thread is copied */
    uint64_t *open_seqs;          /* and their numbers in the run */
    size_t depth;
};

struct commit {
    sqlite3 *db; /* the window's */
    int64_t run_id;
    struct trace_writer *writer;
    uint64_t from_ns, to_ns;
    uint64_t segments;
    struct renumbering images, functions, sites, processes;
    struct numbering maps[NUMBER_KINDS]; /* the same of functions and sites, for sections */
    struct moved_thread *threads;        /* by thread_id */
    size_t thread_count, thread_capacity;
    struct error *err;
};

/* ------------------------------------------------------------------------------------------ numbers */

static int64_t number_of(const struct renumbering *map, int64_t id)
{
    return id >= 0 && (size_t)id < map->count ? map->numbers[id] : 0;
}

static int set_number(struct renumbering *map, int64_t id, int64_t number)
{
    if (id < 0 || id > UINT32_MAX || array_reserve(&map->numbers, &map->capacity, (size_t)id + 1))
        return -ENOMEM;
    while (map->count <= (size_t)id)
        map->numbers[map->count++] = 0;
    map->numbers[id] = number;
    return 0;
}

/* The row of the window's catalog with that id. -EIO: there is none. */
static int find_row(struct commit *commit, const char *sql, int64_t id, sqlite3_stmt **ret_row)
{
    int result, code = db_prepare(commit->db, sql, what, ret_row, commit->err);

    if (code)
        return code;
    db_bind(*ret_row, "i", id);
    result = sqlite3_step(*ret_row);
    if (result == SQLITE_ROW)
        return 0;
    return result == SQLITE_DONE ? error_say(commit->err, -EIO, "%s: its catalog is not complete", what)
                                 : db_fail(commit->db, commit->err, what);
}

static const char *text(sqlite3_stmt *row, int column)
{
    return (const char *)sqlite3_column_text(row, column);
}

static int take_image(struct commit *commit, int64_t id, int64_t *ret_number)
{
    AUTO_STATEMENT *row = NULL;
    int code = 0;

    *ret_number = number_of(&commit->images, id);
    if (*ret_number)
        return 0;
    code = find_row(commit, "SELECT path, build_id, kind FROM images WHERE image_id = ?1", id, &row);
    if (!code)
        code = trace_writer_image(commit->writer,
                                  &(struct trace_image_description){text(row, 0), text(row, 1), text(row, 2)},
                                  ret_number, commit->err);
    return code || !set_number(&commit->images, id, *ret_number) ? code : error_no_memory(commit->err);
}

static int take_function(struct commit *commit, uint32_t id)
{
    AUTO_STATEMENT *row = NULL;
    struct trace_function_description function;
    int64_t image;
    uint32_t number;
    int code;

    if (id == TRACESTORE_LOST_FUNCTION || number_of(&commit->functions, id))
        return 0;
    code = find_row(commit,
                    "SELECT image_id, name, demangled, address, size, file, line FROM functions"
                    " WHERE function_id = ?1",
                    id, &row);
    if (!code)
        code = take_image(commit, sqlite3_column_int64(row, 0), &image);
    if (code)
        return code;
    function = (struct trace_function_description){
        .name = text(row, 1),
        .demangled = text(row, 2),
        .address = (uint64_t)sqlite3_column_int64(row, 3),
        .size = (uint64_t)sqlite3_column_int64(row, 4),
        .file = text(row, 5),
        .line = sqlite3_column_int(row, 6),
    };
    code = trace_writer_function(commit->writer, image, &function, &number, commit->err);
    if (code)
        return code;
    return set_number(&commit->functions, id, number) ||
                   numbering_set(&commit->maps[NUMBER_FUNCTION], id, number)
               ? error_no_memory(commit->err)
               : 0;
}

static int take_site(struct commit *commit, uint32_t id)
{
    AUTO_STATEMENT *row = NULL;
    struct trace_call_site_description site = {0};
    uint32_t function, number;
    int code;

    if (!id || number_of(&commit->sites, id))
        return 0;
    code = find_row(commit,
                    "SELECT image_id, address, function_id, file, line FROM call_sites WHERE site_id = ?1",
                    id, &row);
    if (!code)
        code = take_image(commit, sqlite3_column_int64(row, 0), &site.image_id);
    if (code)
        return code;
    function = (uint32_t)sqlite3_column_int64(row, 2);
    code = function ? take_function(commit, function) : 0;
    if (code)
        return code;
    site.address = (uint64_t)sqlite3_column_int64(row, 1);
    site.function_id = (uint32_t)number_of(&commit->functions, function);
    site.file = text(row, 3);
    site.line = sqlite3_column_int(row, 4);
    code = trace_writer_call_site(commit->writer, &site, &number, commit->err);
    if (code)
        return code;
    return set_number(&commit->sites, id, number) || numbering_set(&commit->maps[NUMBER_SITE], id, number)
               ? error_no_memory(commit->err)
               : 0;
}

/* ------------------------------------------------------------------------------------------ segments */

/* A segment of the window, or what is open of a thread. */
struct window_segment {
    uint64_t first_seq, event_count, first_ns, last_ns;
    struct segment_parts parts;
    const struct census *functions;
};

/* All functions and sites of a dictionary. */
static int take_dictionary(struct commit *commit, const struct section *section, uint32_t least,
                           int (*take)(struct commit *commit, uint32_t id))
{
    AUTO_FREE uint32_t *ids = NULL;
    size_t count;
    int code = dictionary_read(section->data, section->size, least, &ids, &count);

    for (size_t i = 0; i < count && !code; i++)
        code = take(commit, ids[i]);
    return code;
}

static int take_named(struct commit *commit, const struct segment_parts *parts)
{
    int code = take_dictionary(commit, &parts->sections[SECTION_DICTIONARY], 1, take_function);

    if (!code && parts->flags & SEGMENT_CALL_SITES)
        code = take_dictionary(commit, &parts->sections[SECTION_SITE_DICTIONARY], 0, take_site);
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

static int list_functions(struct commit *commit, const struct census *functions,
                          struct closed_segment *closed)
{
    closed->functions = calloc(functions->count + 1, sizeof(*closed->functions));
    if (!closed->functions)
        return -ENOMEM;
    census_list(functions, closed->functions);
    closed->function_count = functions->count;
    for (size_t i = 0; i < functions->count; i++) {
        uint32_t id = closed->functions[i].function;
        int code = take_function(commit, id);

        if (code)
            return code;
        if (id != TRACESTORE_LOST_FUNCTION)
            closed->functions[i].function = (uint32_t)number_of(&commit->functions, id);
    }
    return 0;
}

static int fill_segment(struct commit *commit, const struct moved_thread *moved,
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
static int flush_much(struct commit *commit)
{
    return trace_writer_pending_bytes(commit->writer) < PENDING_BYTES
               ? 0
               : trace_writer_flush(commit->writer, commit->to_ns, commit->err);
}

static int copy_segment(struct commit *commit, const struct moved_thread *moved,
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
static int write_open_call(struct commit *commit, const struct moved_thread *moved,
                           const struct open_call *call, uint64_t missing, bool has_time)
{
    uint32_t function = (uint32_t)number_of(&commit->functions, call->function),
             site = call->site ? (uint32_t)number_of(&commit->sites, call->site) : 0;
    int code = has_time ? thread_writer_anchor(moved->thread, call->ns) : 0;

    if (!code && missing)
        code = thread_writer_lost(moved->thread, commit->from_ns, missing, TRACE_LOSS_WINDOW, commit->err);
    if (!code)
        code = call->assumed ? thread_writer_call_assumed(moved->thread, function, site)
                             : thread_writer_call_from(moved->thread, function, site);
    return code;
}

/* `began_ns`: the anchor before the first event that is kept. */
static int write_head(struct commit *commit, struct moved_thread *moved, uint64_t began_ns)
{
    uint64_t next = 0, anchor_ns = 0;
    int code = 0;

    for (size_t i = 0; i < moved->depth && !code; i++) {
        const struct open_call *call = &moved->open[i];
        bool has_time = call->ns > anchor_ns;

        code = take_function(commit, call->function);
        if (!code)
            code = take_site(commit, call->site);
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

/* The columns of THREADS_SQL. */
enum { THREAD_ID, PROCESS_ID, TID, LABEL, NAME, STARTED, ENDED, RETURNS };
#define THREADS_SQL \
    "SELECT thread_id, process_id, tid, label, name, started_ns, ended_ns, returns FROM threads" \
    " WHERE run_id = ?1 ORDER BY thread_id"

/* A thread while it is copied. */
struct copying {
    struct commit *commit;
    sqlite3_stmt *row; /* of THREADS_SQL */
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
    struct commit *commit = copying->commit;
    sqlite3_stmt *row = copying->row;
    const struct trace_thread_description description = {
        .process_id = number_of(&commit->processes, sqlite3_column_int64(row, PROCESS_ID)),
        .tid = sqlite3_column_int(row, TID),
        .label = text(row, LABEL),
        .name = text(row, NAME),
        .started_ns = (uint64_t)sqlite3_column_int64(row, STARTED),
        .returns = trace_returns_parse(text(row, RETURNS)),
        .call_sites = call_sites,
    };

    return trace_writer_thread(commit->writer, &description, &copying->moved.thread, commit->err);
}

/* What stands before the first segment, from that segment's own beginning. */
static int begin_thread(struct copying *copying, const struct window_segment *first)
{
    struct commit *commit = copying->commit;
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
    struct commit *commit = copying->commit;
    AUTO_STATEMENT *row = NULL;
    AUTO_SEGMENT_COUNTS counts = {0};
    int result = SQLITE_ROW, code = db_prepare(commit->db, SEGMENTS_SQL, what, &row, commit->err);

    if (!code)
        code = segment_counts_open(&counts, commit->db, COUNTS_OF_SEGMENT, commit->err);
    if (code)
        return code;
    db_bind(row, "i", thread_id);
    *ret_behind = 0;
    while (!code && (result = sqlite3_step(row)) == SQLITE_ROW) {
        code = take_row(copying, row, &counts);
        *ret_behind =
            (uint64_t)(sqlite3_column_int64(row, FIRST_SEQ) + sqlite3_column_int64(row, EVENT_COUNT));
    }
    return code || result == SQLITE_DONE ? code : db_fail(commit->db, commit->err, what);
}

/* What is younger than the last segment. */
static int take_tail(struct copying *copying, int64_t thread_id, uint64_t behind)
{
    struct commit *commit = copying->commit;
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

static int copy_thread(struct commit *commit, sqlite3_stmt *row)
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

/* Calls `take` with each row that the query about the run gives. */
static int each_row(struct commit *commit, const char *sql,
                    int (*take)(struct commit *commit, sqlite3_stmt *row))
{
    AUTO_STATEMENT *row = NULL;
    int result = SQLITE_ROW, code = db_prepare(commit->db, sql, what, &row, commit->err);

    if (code)
        return code;
    db_bind(row, "i", commit->run_id);
    while (!code && (result = sqlite3_step(row)) == SQLITE_ROW)
        code = take(commit, row);
    return code || result == SQLITE_DONE ? code : db_fail(commit->db, commit->err, what);
}

/* ------------------------------------------------------------------------------------------ the rest */

#define PROCESSES_SQL \
    "SELECT process_id, pid, parent_process_id, coalesce(rank, -1), exe, argv, started_ns, ended_ns," \
    " coalesce(exit_status, -1) FROM processes WHERE run_id = ?1 ORDER BY process_id"

static int copy_process(struct commit *commit, sqlite3_stmt *row)
{
    const struct trace_process_description process = {
        .pid = sqlite3_column_int(row, 1),
        .parent_process_id = number_of(&commit->processes, sqlite3_column_int64(row, 2)),
        .rank = sqlite3_column_int(row, 3),
        .exe = text(row, 4),
        .argv = text(row, 5),
        .started_ns = (uint64_t)sqlite3_column_int64(row, 6),
    };
    int64_t number;
    int code = trace_writer_process(commit->writer, &process, &number, commit->err);

    if (!code && set_number(&commit->processes, sqlite3_column_int64(row, 0), number))
        code = error_no_memory(commit->err);
    if (code || sqlite3_column_type(row, 7) == SQLITE_NULL)
        return code;
    return trace_writer_process_end(commit->writer, number, (uint64_t)sqlite3_column_int64(row, 7),
                                    sqlite3_column_int(row, 8), commit->err);
}

static int compare_threads(const void *key, const void *item)
{
    const int64_t id = *(const int64_t *)key;
    const struct moved_thread *moved = item;

    return (id > moved->thread_id) - (id < moved->thread_id);
}

#define LOSSES_SQL \
    "SELECT thread_id, coalesce(seq, -1), ns, count, coalesce(calls, -1), coalesce(returns, -1), cause" \
    " FROM losses WHERE run_id = ?1 AND cause <> 'unfinished' ORDER BY loss_id"

static int copy_loss(struct commit *commit, sqlite3_stmt *row)
{
    int64_t thread_id = sqlite3_column_int64(row, 0), seq = sqlite3_column_int64(row, 1), thread = 0;
    const struct lost_events lost = {.count = (uint64_t)sqlite3_column_int64(row, 3),
                                     .calls = sqlite3_column_int64(row, 4),
                                     .returns = sqlite3_column_int64(row, 5)};

    if (thread_id) {
        const struct moved_thread *moved = commit->thread_count
                                               ? bsearch(&thread_id, commit->threads, commit->thread_count,
                                                         sizeof(*commit->threads), compare_threads)
                                               : NULL;

        if (!moved || (seq >= 0 && (uint64_t)seq < moved->first_seq))
            return 0; /* it is of before the window */
        thread = moved->thread->number;
        seq = seq < 0 ? seq : (int64_t)((uint64_t)seq - moved->first_seq + moved->head);
    }
    return writer_queue_loss(commit->writer, thread, seq, (uint64_t)sqlite3_column_int64(row, 2), &lost,
                             text(row, 6))
               ? error_no_memory(commit->err)
               : 0;
}

#define BLIND_SQL \
    "SELECT function_id, from_ns, to_ns, cause, calls_per_second, coalesce(calls_missed, -1) FROM blind" \
    " WHERE run_id = ?1 ORDER BY rowid"

/* How many calls were missed in the window is not known of a function that was not seen before it already. */
static int copy_blind(struct commit *commit, sqlite3_stmt *row)
{
    uint32_t id = (uint32_t)sqlite3_column_int64(row, 0), function;
    uint64_t from_ns = (uint64_t)sqlite3_column_int64(row, 1);
    uint64_t to_ns = (uint64_t)sqlite3_column_int64(row, 2);
    int64_t missed = from_ns >= commit->from_ns ? sqlite3_column_int64(row, 5) : -1;
    double rate = sqlite3_column_double(row, 4);
    int code = take_function(commit, id);

    if (code)
        return code;
    function = (uint32_t)number_of(&commit->functions, id);
    code = trace_writer_blind(commit->writer, function, from_ns, to_ns, text(row, 3), rate, commit->err);
    return code || missed < 0
               ? code
               : trace_writer_blind_end(commit->writer, function, from_ns, to_ns, missed, rate, commit->err);
}

static int copy_tag(struct commit *commit, sqlite3_stmt *row)
{
    return trace_writer_tag(commit->writer, text(row, 0), text(row, 1), commit->err);
}

/* Notes of binaries are of no run. */
static int copy_plan(struct commit *commit, sqlite3_stmt *row)
{
    return trace_writer_budget_plan(commit->writer, text(row, 0), (uint64_t)sqlite3_column_int64(row, 1),
                                    sqlite3_column_double(row, 2), commit->err);
}

static int copy_catalog(struct commit *commit)
{
    int code = each_row(commit,
                        "SELECT key, value FROM tags WHERE run_id = ?1"
                        " AND key NOT IN ('" WINDOW_FROM_TAG "', '" WINDOW_CUT_TAG "')",
                        copy_tag);

    if (!code)
        code = each_row(commit, PROCESSES_SQL, copy_process);
    if (!code)
        code = each_row(commit, THREADS_SQL, copy_thread);
    if (!code)
        code = each_row(commit, LOSSES_SQL, copy_loss);
    if (!code)
        code = each_row(commit, BLIND_SQL, copy_blind);
    if (!code)
        code =
            each_row(commit, "SELECT build_id, address, calls_per_second FROM budget_plans WHERE ?1 NOTNULL",
                     copy_plan);
    return code;
}

/* ------------------------------------------------------------------------------------------ the run */

/* The columns of RUN_SQL. */
enum { RUN, RUN_NAME, COMMAND, OPTIONS, RUN_STARTED, RUN_ENDED, STATUS, FLUSHED, FROM, IS_CUT };
#define RUN_SQL \
    "SELECT run_id, name, command, options, started_ns, ended_ns, coalesce(exit_status, -1)," \
    " coalesce((SELECT max(ns) FROM losses l WHERE l.run_id = r.run_id AND cause = 'unfinished'), " \
    "started_ns)," \
    " coalesce((SELECT CAST(value AS INTEGER) FROM tags t WHERE t.run_id = r.run_id" \
    " AND key = '" WINDOW_FROM_TAG \
    "'), 0), EXISTS (SELECT 1 FROM tags t WHERE t.run_id = r.run_id" \
    " AND key = '" WINDOW_CUT_TAG "' AND value = '1') FROM runs r ORDER BY run_id DESC LIMIT 1"

static void format_time(uint64_t ns, char *text, size_t size)
{
    time_t seconds = (time_t)(ns / 1000000000u);
    struct tm tm;
    size_t length = strftime(text, size, "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &tm));

    snprintf(text + length, size - length, ".%03uZ", (unsigned)(ns / 1000000u % 1000));
}

/* What was kept, and what not; and a loss for threads of which nothing was. */
static int tell_window(struct commit *commit, sqlite3_stmt *row, const struct window_commit *asked)
{
    char value[160], from[40];
    int code;

    if (commit->from_ns > (uint64_t)sqlite3_column_int64(row, RUN_STARTED)) {
        format_time(commit->from_ns, from, sizeof(from));
        snprintf(value, sizeof(value), "the last %.3f s of %.3f s; nothing was kept from before %s%s",
                 (double)(commit->to_ns - commit->from_ns) / 1e9,
                 (double)(commit->to_ns - (uint64_t)sqlite3_column_int64(row, RUN_STARTED)) / 1e9, from,
                 sqlite3_column_int(row, IS_CUT) ? "; shorter than asked for: the size is limited" : "");
        code = trace_writer_loss(commit->writer, commit->from_ns, 0, TRACE_LOSS_WINDOW, commit->err);
    } else {
        snprintf(value, sizeof(value), "all of the recording, %.3f s",
                 (double)(commit->to_ns - commit->from_ns) / 1e9);
        code = 0;
    }
    if (!code)
        code = trace_writer_tag(commit->writer, "flight", value, commit->err);
    snprintf(value, sizeof(value), "%g s", (double)asked->window_ns / 1e9);
    if (!code && asked->window_ns)
        code = trace_writer_tag(commit->writer, "flight: window", value, commit->err);
    return code || !asked->trigger
               ? code
               : trace_writer_tag(commit->writer, "flight: trigger", asked->trigger, commit->err);
}

/* Of a run whose recorder has died nobody knows what came later. */
static int end_run(struct commit *commit, const struct window_commit *asked, int status)
{
    int code;

    if (!asked->is_cut)
        return trace_writer_end(commit->writer, commit->to_ns, status, commit->err);
    code = trace_writer_flush(commit->writer, commit->to_ns, commit->err);
    return code ? code
                : store_end_cut_run(commit->writer->db, trace_writer_run_id(commit->writer), commit->err);
}

static int make_run(struct commit *commit, struct tracestore *store, sqlite3_stmt *row,
                    const struct window_commit *asked)
{
    bool has_ended = sqlite3_column_type(row, RUN_ENDED) != SQLITE_NULL;
    uint64_t started_ns = (uint64_t)sqlite3_column_int64(row, RUN_STARTED);
    struct trace_run_description run = {
        .name = asked->name ? asked->name : text(row, RUN_NAME),
        .command = text(row, COMMAND),
        .options = text(row, OPTIONS),
    };
    int code;

    if (!*run.name) /* one is made */
        run.name = NULL;
    commit->run_id = sqlite3_column_int64(row, RUN);
    commit->from_ns = (uint64_t)sqlite3_column_int64(row, FROM);
    if (commit->from_ns < started_ns)
        commit->from_ns = started_ns;
    commit->to_ns = (uint64_t)sqlite3_column_int64(row, has_ended ? RUN_ENDED : FLUSHED);
    if (commit->to_ns < commit->from_ns)
        commit->to_ns = commit->from_ns;
    run.started_ns = commit->from_ns;
    code = trace_writer_begin(store, &run, NULL, &commit->writer, commit->err);
    if (!code)
        code = copy_catalog(commit);
    if (!code)
        code = tell_window(commit, row, asked);
    if (!code)
        code = end_run(commit, asked, sqlite3_column_int(row, STATUS));
    if (code && commit->writer)
        trace_writer_abandon(commit->writer, NULL);
    return code;
}

static void release(struct commit *commit)
{
    for (int kind = 0; kind < NUMBER_KINDS; kind++)
        numbering_release(&commit->maps[kind]);
    free(commit->images.numbers);
    free(commit->functions.numbers);
    free(commit->sites.numbers);
    free(commit->processes.numbers);
    free(commit->threads);
    trace_writer_free(commit->writer);
}

/* All that is read is of one moment. */
static int commit_snapshot(struct commit *commit, struct tracestore *store, const struct window_commit *asked,
                           struct window_committed *ret_committed)
{
    AUTO_STATEMENT *row = NULL;
    int result, code = db_prepare(commit->db, RUN_SQL, what, &row, commit->err);

    if (code)
        return code;
    result = sqlite3_step(row);
    if (result == SQLITE_DONE)
        return 0;
    code =
        result == SQLITE_ROW ? make_run(commit, store, row, asked) : db_fail(commit->db, commit->err, what);
    if (!code)
        *ret_committed = (struct window_committed){.run_id = trace_writer_run_id(commit->writer),
                                                   .from_ns = commit->from_ns,
                                                   .to_ns = commit->to_ns,
                                                   .segments = commit->segments};
    return code;
}

int window_commit(struct tracestore *window, struct tracestore *store, const struct window_commit *asked,
                  struct window_committed *ret_committed, struct error *err)
{
    struct error own = {0};
    struct commit commit = {.db = window->db, .err = err ? err : &own};
    struct window_committed committed = {0};
    int code = db_exec(commit.db, "BEGIN", what, commit.err);

    if (code)
        return code;
    code = commit_snapshot(&commit, store, asked, &committed);
    sqlite3_exec(commit.db, "COMMIT", NULL, NULL, NULL);
    release(&commit);
    if (!code)
        *ret_committed = committed;
    return code;
}
