/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One flush, one transaction. The journal is kept short: when more than half of its bytes are stale or
 * replaced (and it is worth the while), all rows of the run are deleted and what is open is written in one
 * piece. That costs no more than what was written before, so each byte is written twice on average at most.
 */
#include <zlib.h>

#include "base/debug.h"
#include "base/error.h"
#include "store/db/reserve.h"
#include "store/segment/segment_row.h"
#include "store/writer/writer.h"

#define JOURNAL_SLACK ((size_t)1 << 20)
#define JOURNAL_ROW_BYTES ((size_t)8 << 20) /* a row that has grown to this is followed by another */
#define CHUNK_HEAD_BYTES 40
#define LIST_ENTRY_BYTES 3 /* about, of a function in segments.functions */
#define ROW_BYTES 120      /* of what else is in a row and its index entries */

static const char what[] = "cannot write events";

/* ------------------------------------------------------------------------------------------ segments */

/* The payload with ids in place of numbers, sealed. */
int writer_seal_payload(struct trace_writer *writer, const struct closed_segment *closed,
                        struct bytes *sealed, struct error *err)
{
    struct bytes scratch[SECTION_COUNT] = {0};
    AUTO_BYTES room = {0};
    struct segment_parts parts;
    int code = segment_parse(closed->payload.data, closed->payload.size, &room, &parts);

    if (!code && (writer->numberings[NUMBER_FUNCTION].renamed || writer->numberings[NUMBER_SITE].renamed))
        code = numbering_translate(writer->numberings, &parts, scratch);
    if (!code)
        code = segment_seal(&parts, sealed);
    for (int i = 0; i < SECTION_COUNT; i++)
        bytes_release(&scratch[i]);
    return code ? error_no_memory(err) : 0;
}

static int write_segment(struct trace_writer *writer, struct segment_inserter *inserter,
                         struct closed_segment *closed, struct error *err)
{
    AUTO_BYTES payload = {0};
    AUTO_FREE struct function_calls *functions = calloc(closed->function_count + 1, sizeof(*functions));
    struct segment_row row = {
        .run_id = writer->run_id,
        .thread_id = numbering_id(&writer->numberings[NUMBER_THREAD], closed->thread),
        .first_seq = closed->first_seq,
        .event_count = closed->event_count,
        .first_ns = closed->first_ns,
        .last_ns = closed->last_ns,
        .codec = closed->codec,
        .functions = functions,
        .function_count = closed->function_count,
    };
    int code;

    if (!functions)
        return error_no_memory(err);
    for (size_t i = 0; i < closed->function_count; i++) {
        int64_t number = closed->functions[i].function;

        functions[i].function = (uint32_t)numbering_id(&writer->numberings[NUMBER_FUNCTION], number);
        functions[i].calls = closed->functions[i].calls;
    }
    code = writer_seal_payload(writer, closed, &payload, err);
    row.payload = (struct section){payload.data, payload.size};
    if (!code)
        code = segment_insert(inserter, &row, what, err);
    closed->segment_id = sqlite3_last_insert_rowid(writer->db);
    closed->stored_bytes = payload.size + closed->function_count * LIST_ENTRY_BYTES + ROW_BYTES;
    return code;
}

static int write_segments(struct trace_writer *writer, struct error *err)
{
    AUTO_SEGMENT_INSERTER inserter = {0};
    int code;

    if (!writer->closed)
        return 0;
    code = segment_inserter_open(&inserter, writer->db, what, err);
    if (!code && writer->window)
        code = window_make_way(writer, err);
    for (struct closed_segment *closed = writer->closed; closed && !code; closed = closed->next)
        code = write_segment(writer, &inserter, closed, err);
    return code;
}

/* ------------------------------------------------------------------------------------------ journal */

static int insert_journal_row(struct trace_writer *writer, struct bytes *row, uint64_t now_ns, size_t *total,
                              struct error *err)
{
    int code = db_run(writer->db, what, err,
                      "INSERT INTO journal (run_id, ns, checksum, data) VALUES (?1, ?2, ?3, ?4)", "iiib",
                      writer->run_id, (int64_t)now_ns, (int64_t)crc32(0, row->data, (uInt)row->size),
                      (const void *)row->data, row->size);

    *total += row->size;
    row->size = 0;
    return code;
}

static int add_thread(struct trace_writer *writer, struct thread_writer *thread, struct bytes *row,
                      uint64_t now_ns, size_t *total, struct error *err)
{
    if (!thread->builder.event_count)
        return 0;
    segment_builder_settle(&thread->builder);
    if ((!row->size && journal_row_begin(row)) ||
        journal_add_chunk(row, thread_writer_id(thread), &thread->builder, writer->numberings, &thread->mark))
        return error_no_memory(err);
    return row->size < JOURNAL_ROW_BYTES ? 0 : insert_journal_row(writer, row, now_ns, total, err);
}

/* Adds the news of the dirty threads, or rewrites the journal with all threads when `rewrite` is set. The new
 * number of bytes in it goes to `ret_total`. */
static int write_journal(struct trace_writer *writer, bool rewrite, uint64_t now_ns, size_t *ret_total,
                         struct error *err)
{
    AUTO_BYTES row = {0};
    size_t total = rewrite ? 0 : writer->journal_total;
    int code = 0;

    if (rewrite) {
        code = db_run(writer->db, what, err, "DELETE FROM journal WHERE run_id = ?1", "i", writer->run_id);
        for (struct thread_writer *thread = writer->threads; thread && !code; thread = thread->next) {
            journal_mark_reset(&thread->mark);
            code = add_thread(writer, thread, &row, now_ns, &total, err);
        }
    } else {
        for (struct thread_writer *thread = writer->dirty; thread && !code; thread = thread->next_dirty)
            code = add_thread(writer, thread, &row, now_ns, &total, err);
    }
    if (!code && row.size)
        code = insert_journal_row(writer, &row, now_ns, &total, err);
    *ret_total = total;
    return code;
}

/* What the journal would have to hold at least, with the threads' present segments. */
static size_t measure_live(struct trace_writer *writer)
{
    for (struct thread_writer *thread = writer->dirty; thread; thread = thread->next_dirty) {
        size_t bytes =
            thread->builder.event_count ? segment_builder_bytes(&thread->builder) + CHUNK_HEAD_BYTES : 0;

        writer->journal_live += bytes - thread->journal_bytes;
        thread->journal_bytes = bytes;
    }
    return writer->journal_live;
}

/* ------------------------------------------------------------------------------------------ other rows */

static int write_ending(struct trace_writer *writer, const struct writer_ending *ending, struct error *err)
{
    int code = db_run(writer->db, what, err, "DELETE FROM journal WHERE run_id = ?1", "i", writer->run_id);

    if (!code)
        code = db_run(writer->db, what, err, "DELETE FROM losses WHERE run_id = ?1 AND cause = 'unfinished'",
                      "i", writer->run_id);
    if (!code)
        code =
            db_run(writer->db, what, err, "UPDATE runs SET ended_ns = ?2, exit_status = ?3 WHERE run_id = ?1",
                   "iin", writer->run_id, (int64_t)ending->ended_ns, (int64_t)ending->exit_status);
    return code;
}

/* ---------------------------------------------------------------------------------------- the transaction */

static int write_rows(struct trace_writer *writer, uint64_t now_ns, const struct writer_ending *ending,
                      bool rewrite, size_t *journal_total, struct error *err)
{
    int code = catalog_queue_write(&writer->catalog, writer->db, writer->numberings, err);

    if (!code)
        code = write_segments(writer, err);
    if (!code && writer->window)
        code = window_write(writer, now_ns, err);
    if (!code)
        code = process_writers_write(writer, err);
    if (!code && ending)
        return write_ending(writer, ending, err);
    if (!code)
        code = db_run(writer->db, what, err,
                      "UPDATE losses SET ns = ?2 WHERE run_id = ?1 AND cause = 'unfinished'", "ii",
                      writer->run_id, (int64_t)now_ns);
    return code ? code : write_journal(writer, rewrite, now_ns, journal_total, err);
}

/* Forgets what is committed now. */
static void advance(struct trace_writer *writer, bool all)
{
    struct thread_writer *thread, *next;

    if (writer->window)
        window_advance(writer);
    for (struct closed_segment *closed = writer->closed, *behind; closed; closed = behind) {
        behind = closed->next;
        closed->owner->window.queued = 0;
        closed_segment_free(closed);
    }
    writer->closed = NULL;
    writer->closed_end = &writer->closed;
    writer->closed_bytes = 0;
    process_writers_advance(writer);
    catalog_queue_clear(&writer->catalog);
    for (int kind = 0; kind < NUMBER_KINDS; kind++)
        writer->numberings[kind].settled = writer->numberings[kind].next;
    for (thread = all ? writer->threads : NULL; thread; thread = thread->next)
        if (thread->builder.event_count)
            journal_advance(&thread->mark, &thread->builder);
    for (thread = writer->dirty; thread; thread = next) {
        next = thread->next_dirty;
        if (!all && thread->builder.event_count)
            journal_advance(&thread->mark, &thread->builder);
        thread->dirty = false;
        thread->next_dirty = NULL;
    }
    writer->dirty = NULL;
    if (writer->window)
        window_forget_threads(writer);
}

int writer_flush(struct trace_writer *writer, uint64_t now_ns, const struct writer_ending *ending,
                 struct error *err)
{
    size_t live, journal_total = 0;
    bool rewrite;
    int code;

    writer_free_idle(writer);
    if (writer->window && window_prepare(writer, now_ns))
        return error_no_memory(err);
    for (struct thread_writer *thread = writer->dirty; thread; thread = thread->next_dirty) {
        uint64_t least = thread->builder.anchor_ns;

        if (thread->unbounded)
            thread->unbounded->last_ns = now_ns > least ? now_ns : least;
        thread->unbounded = NULL;
    }
    live = measure_live(writer);
    rewrite = !ending && writer->journal_total > 2 * live + (live ? JOURNAL_SLACK : 0);
    code = db_begin(writer->db, what, err);
    if (code)
        return code;
    code = write_rows(writer, now_ns, ending, rewrite, &journal_total, err);
    if (!code)
        code = reserve_cover_log(writer->store, what, err);
    if (code) {
        db_rollback(writer->db);
        return code;
    }
    code = db_commit(writer->db, what, err);
    if (code)
        return code;
    debug_log("run %lld: committed, %zu bytes in the journal", (long long)writer->run_id, journal_total);
    writer->journal_total = journal_total;
    advance(writer, rewrite);
    return 0;
}
