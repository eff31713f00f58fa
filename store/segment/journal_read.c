/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <uthash.h>
#include <zlib.h>

#include "base/error.h"
#include "store/db/db.h"
#include "store/segment/journal.h"

/* ---------------------------------------------------------------------------------------- rows and chunks */

int journal_row_open(const uint8_t *data, size_t size, struct bytes_reader *ret_reader)
{
    struct bytes_reader reader = reader_over(data, size);
    uint8_t version = reader_u8(&reader);

    if (reader.failed)
        return -EBADMSG;
    if (version != JOURNAL_VERSION)
        return -ENOTSUP;
    *ret_reader = reader;
    return 0;
}

/* The next chunk, of `only_thread` when that is not 0: the others are passed by without a look inside. */
static int next_chunk(struct bytes_reader *reader, int64_t only_thread, struct bytes_reader *ret_chunk)
{
    while (reader_left(reader)) {
        uint64_t size = reader_varint(reader);
        const uint8_t *data = reader_take(reader, size);
        struct bytes_reader peek;

        if (reader->failed)
            return -EBADMSG;
        *ret_chunk = peek = reader_over(data, (size_t)size);
        if (!only_thread || (int64_t)reader_varint(&peek) == only_thread)
            return 0;
    }
    return 1;
}

static int parse_chunk(struct bytes_reader in, struct journal_chunk *ret_chunk)
{
    struct journal_chunk chunk = {0};

    chunk.thread_id = (int64_t)reader_varint(&in);
    chunk.first_seq = reader_varint(&in);
    chunk.event_count = reader_varint(&in);
    chunk.codec = reader_u8(&in);
    chunk.flags = reader_u8(&in);
    chunk.first_ns = reader_varint(&in);
    for (int i = 0; i < SECTION_COUNT; i++) {
        if (!segment_has_section(chunk.flags, i))
            continue;
        chunk.offsets[i] = reader_varint(&in);
        chunk.sections[i].size = reader_varint(&in);
    }
    chunk.calls.size = reader_varint(&in);
    for (int i = 0; i < SECTION_COUNT; i++)
        chunk.sections[i].data = reader_take(&in, chunk.sections[i].size);
    chunk.calls.data = reader_take(&in, chunk.calls.size);
    if (chunk.flags & ~SEGMENT_OPEN_FLAGS)
        return -ENOTSUP;
    if (in.failed || reader_left(&in) || chunk.event_count > SEGMENT_MAX_EVENTS)
        return -EBADMSG;
    *ret_chunk = chunk;
    return 0;
}

int journal_next_chunk(struct bytes_reader *reader, int64_t only_thread, struct journal_chunk *ret_chunk)
{
    struct bytes_reader chunk;
    int code = next_chunk(reader, only_thread, &chunk);

    return code ? code : parse_chunk(chunk, ret_chunk);
}

/* ------------------------------------------------------------------------------------------ tails */

void journal_tail_release(struct journal_tail *tail)
{
    for (int i = 0; i < SECTION_COUNT; i++)
        bytes_release(&tail->sections[i]);
    free(tail->calls);
    *tail = (struct journal_tail){0};
}

static int apply_calls(struct journal_tail *tail, const struct section *calls)
{
    struct bytes_reader reader = reader_over(calls->data, calls->size);
    uint64_t local = 0;

    while (reader_left(&reader)) {
        uint64_t step = reader_varint(&reader), more = reader_varint(&reader);

        if (reader.failed || !step || step > SEGMENT_MAX_FUNCTIONS - local || more > SEGMENT_MAX_EVENTS)
            return -EBADMSG;
        local += step;
        if (array_reserve(&tail->calls, &tail->call_capacity, local))
            return -ENOMEM;
        while (tail->call_count < local)
            tail->calls[tail->call_count++] = 0;
        tail->calls[local - 1] += more;
    }
    return 0;
}

/* Whether the chunk is of the segment that is there already. The first assumed call adds its flag. */
static bool goes_on(const struct journal_tail *tail, const struct journal_chunk *chunk)
{
    return chunk->first_seq == tail->first_seq && chunk->event_count >= tail->event_count &&
           chunk->codec == tail->codec &&
           (chunk->flags == tail->flags || chunk->flags == (tail->flags | SEGMENT_ASSUMED));
}

int journal_tail_apply(struct journal_tail *tail, const struct journal_chunk *chunk)
{
    if (tail->event_count && !goes_on(tail, chunk))
        return -EBADMSG;
    for (int i = 0; i < SECTION_COUNT; i++)
        if (chunk->offsets[i] > tail->sections[i].size)
            return -EBADMSG;
    for (int i = 0; i < SECTION_COUNT; i++) {
        tail->sections[i].size = (size_t)chunk->offsets[i];
        if (bytes_add(&tail->sections[i], chunk->sections[i].data, chunk->sections[i].size))
            return -ENOMEM;
    }
    if (!chunk->offsets[SECTION_DICTIONARY]) /* the segment is told anew, with all its calls */
        tail->call_count = 0;
    tail->first_seq = chunk->first_seq;
    tail->event_count = chunk->event_count;
    tail->first_ns = chunk->first_ns;
    tail->codec = chunk->codec;
    tail->flags = chunk->flags;
    return apply_calls(tail, &chunk->calls);
}

struct segment_parts journal_tail_parts(const struct journal_tail *tail)
{
    struct segment_parts parts = {.codec = tail->codec, .flags = tail->flags};

    for (int i = 0; i < SECTION_COUNT; i++)
        parts.sections[i] = (struct section){tail->sections[i].data, tail->sections[i].size};
    return parts;
}

/* -------------------------------------------------------------------------------------- all rows of a run */

typedef int (*chunk_visitor)(void *context, const struct journal_chunk *chunk, uint64_t ns);

static int visit_row(sqlite3_stmt *row, int64_t only_thread, chunk_visitor visit, void *context)
{
    const uint8_t *data = sqlite3_column_blob(row, 3);
    size_t size = (size_t)sqlite3_column_bytes(row, 3);
    struct bytes_reader reader;
    struct journal_chunk chunk;
    int code;

    if (crc32(0, data, (uInt)size) != (uint32_t)sqlite3_column_int64(row, 2))
        return -EBADMSG;
    code = journal_row_open(data, size, &reader);
    while (!code) {
        code = journal_next_chunk(&reader, only_thread, &chunk);
        if (!code)
            code = visit(context, &chunk, (uint64_t)sqlite3_column_int64(row, 1));
    }
    return code == 1 ? 0 : code;
}

static int visit_chunks(sqlite3 *db, int64_t run_id, int64_t only_thread, chunk_visitor visit, void *context,
                        struct error *err)
{
    static const char what[] = "cannot read the journal";
    AUTO_STATEMENT *row = NULL;
    int result, code = db_prepare(db,
                                  "SELECT journal_id, ns, checksum, data FROM journal WHERE run_id = ?1 "
                                  "ORDER BY journal_id",
                                  what, &row, err);

    if (code)
        return code;
    db_bind(row, "i", run_id);
    while ((result = db_row(row, "innb")) == SQLITE_ROW) {
        code = visit_row(row, only_thread, visit, context);
        if (code == -ENOMEM)
            return error_no_memory(err);
        if (code < 0)
            return error_set(err, code, "the youngest events of the run are missing",
                             "cannot read journal row %lld of run %lld",
                             (long long)sqlite3_column_int64(row, 0), (long long)run_id);
    }
    return result == SQLITE_DONE ? 0 : db_fail(db, err, what);
}

/* One thread. */

struct one_tail {
    int64_t thread_id;
    uint64_t first_seq;
    struct journal_tail *tail;
};

static int apply_to_one(void *context, const struct journal_chunk *chunk, uint64_t ns)
{
    struct one_tail *one = context;
    int code;

    if (chunk->thread_id != one->thread_id || chunk->first_seq != one->first_seq)
        return 0;
    code = journal_tail_apply(one->tail, chunk);
    one->tail->until_ns = one->tail->first_ns ? ns : 0;
    return code;
}

int journal_read_tail(struct sqlite3 *db, int64_t thread_id, uint64_t first_seq, struct journal_tail *tail,
                      struct error *err)
{
    struct one_tail one = {.thread_id = thread_id, .first_seq = first_seq, .tail = tail};
    int64_t run_id;
    int code = db_number(db, "cannot read the threads", &run_id, err,
                         "SELECT run_id FROM threads WHERE thread_id = ?1", "i", thread_id);

    return code ? code : visit_chunks(db, run_id, thread_id, apply_to_one, &one, err);
}

/* All threads. */

struct thread_tail {
    int64_t thread_id;
    uint64_t first_seq;
    struct journal_tail tail;
    UT_hash_handle hh;
};

struct all_tails {
    sqlite3 *db;
    sqlite3_stmt *next_seq; /* the event behind a thread's last segment: where its open segment begins */
    struct error *err;
    struct thread_tail *threads;
};

static int read_next_seq(struct all_tails *all, int64_t thread_id, uint64_t *ret_seq)
{
    int result;

    db_bind(all->next_seq, "i", thread_id);
    result = db_row(all->next_seq, "n");
    *ret_seq = result == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(all->next_seq, 0) : 0;
    sqlite3_reset(all->next_seq);
    return result == SQLITE_ROW || result == SQLITE_DONE
               ? 0
               : db_fail(all->db, all->err, "cannot read the segments");
}

static int find_thread(struct all_tails *all, int64_t thread_id, struct thread_tail **ret_thread)
{
    struct thread_tail *thread;
    int code;

    HASH_FIND(hh, all->threads, &thread_id, sizeof(thread_id), thread);
    if (!thread) {
        thread = calloc(1, sizeof(*thread));
        if (!thread)
            return -ENOMEM;
        thread->thread_id = thread_id;
        code = read_next_seq(all, thread_id, &thread->first_seq);
        if (code) {
            free(thread);
            return code;
        }
        HASH_ADD(hh, all->threads, thread_id, sizeof(thread->thread_id), thread);
    }
    *ret_thread = thread;
    return 0;
}

static int apply_to_all(void *context, const struct journal_chunk *chunk, uint64_t ns)
{
    struct thread_tail *thread;
    int code = find_thread(context, chunk->thread_id, &thread);

    if (code || chunk->first_seq != thread->first_seq)
        return code;
    code = journal_tail_apply(&thread->tail, chunk);
    thread->tail.until_ns = thread->tail.first_ns ? ns : 0;
    return code;
}

static void all_tails_release(struct all_tails *all)
{
    struct thread_tail *thread, *next;

    HASH_ITER (hh, all->threads, thread, next) {
        HASH_DEL(all->threads, thread);
        journal_tail_release(&thread->tail);
        free(thread);
    }
}

int journal_visit_tails(struct sqlite3 *db, int64_t run_id,
                        int (*visit)(void *context, int64_t thread_id, const struct journal_tail *tail),
                        void *context, struct error *err)
{
    struct all_tails all = {.db = db, .err = err};
    bool own_snapshot = sqlite3_get_autocommit(db);
    int code = own_snapshot ? db_exec(db, "BEGIN", "cannot read the journal", err) : 0;

    if (code)
        return code;
    code = db_prepare(db,
                      "SELECT first_seq + event_count FROM segments WHERE thread_id = ?1"
                      " ORDER BY first_seq DESC LIMIT 1",
                      "cannot read the segments", &all.next_seq, err);
    if (!code)
        code = visit_chunks(db, run_id, 0, apply_to_all, &all, err);
    sqlite3_finalize(all.next_seq);
    if (own_snapshot)
        sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    for (struct thread_tail *thread = all.threads; thread && !code; thread = thread->hh.next)
        if (thread->tail.event_count)
            code = visit(context, thread->thread_id, &thread->tail);
    all_tails_release(&all);
    return code;
}
