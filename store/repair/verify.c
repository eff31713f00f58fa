/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Checking a store: what SQLite says about its pages, then every segment and journal row: checksum, decoding
 * to the last bit, counts of calls by function, no gap in a thread's stream that no loss tells of, that each
 * segment begins with the calls open that the one before it left open, with their sites and what is assumed
 * of them, and that the catalog has every function and call site. Process events: verify_processes.c.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"
#include "store/db/column_types.h"
#include "store/db/store.h"
#include "store/repair/verify_processes.h"
#include "store/segment/census.h"
#include "store/segment/journal.h"
#include "store/segment/segment_counts.h"

static const char what[] = "cannot check";

struct verifier {
    sqlite3 *db;
    void (*report)(void *context, const struct tracestore_problem *problem);
    void *context;
    int problems;
    uint64_t segments;
    struct tracestore_problem place; /* where we are, for problem() */
    sqlite3_stmt *find[2];           /* by enum catalog_row */
    struct census census;            /* of the segment being checked */
    struct segment_counts counts;    /* of single segments */

    /* What the next segment of the thread has to begin with. */
    int64_t thread_id;
    uint64_t next_seq;
    struct open_call *open;
    size_t depth, capacity;
    bool open_known; /* not behind a damaged segment */
};

static void problem(struct verifier *verifier, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void problem(struct verifier *verifier, const char *format, ...)
{
    struct tracestore_problem found = verifier->place;
    va_list args;

    va_start(args, format);
    vsnprintf(found.text, sizeof(found.text), format, args);
    va_end(args);
    verifier->problems++;
    if (verifier->report)
        verifier->report(verifier->context, &found);
}

/* ------------------------------------------------------------------------------------ SQLite's own checks */

static void check_database(struct verifier *verifier)
{
    static const char *const checks[] = {"PRAGMA integrity_check(20)", "PRAGMA foreign_key_check"};

    for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
        AUTO_STATEMENT *row = NULL;
        int result = sqlite3_prepare_v2(verifier->db, checks[i], -1, &row, NULL);

        while (result == SQLITE_OK && (result = sqlite3_step(row)) == SQLITE_ROW) {
            const char *text = (const char *)sqlite3_column_text(row, 0);

            result = SQLITE_OK;
            if (i == 1)
                problem(verifier, "a row of table %s refers to nothing", text ? text : "?");
            else if (text && strcmp(text, "ok") != 0)
                problem(verifier, "%.180s", text);
        }
        if (result != SQLITE_DONE)
            problem(verifier, "%.180s", sqlite3_errmsg(verifier->db));
    }
}

/* Values that no column of that table may have. */
static void report_column(void *context, const char *table, const char *column, int64_t rows)
{
    problem(context, "%lld row%s of table %s ha%s in column %s what is not of its type or less than none",
            (long long)rows, rows == 1 ? "" : "s", table, rows == 1 ? "s" : "ve", column);
}

static int check_columns(struct verifier *verifier)
{
    struct error err = {0};
    int code = column_types_check(verifier->db, report_column, verifier, &err);

    if (err.message[0] && code != -ENOMEM)
        problem(verifier, "%.190s", err.message);
    return code == -ENOMEM ? code : 0;
}

/* ------------------------------------------------------------------------------------------ catalog */

enum catalog_row { ROW_SITE, ROW_FUNCTION };

/* 1: the catalog has the row; 0: it does not; <0. */
static int has_row(struct verifier *verifier, enum catalog_row kind, uint32_t id)
{
    static const char *const questions[] = {
        [ROW_SITE] = "SELECT 1 FROM call_sites WHERE site_id = ?1",
        [ROW_FUNCTION] = "SELECT 1 FROM functions WHERE function_id = ?1",
    };
    sqlite3_stmt **find = &verifier->find[kind];
    int result;

    if (!*find && sqlite3_prepare_v2(verifier->db, questions[kind], -1, find, NULL) != SQLITE_OK)
        return -EIO;
    db_bind(*find, "i", (int64_t)id);
    result = sqlite3_step(*find);
    sqlite3_reset(*find);
    return result == SQLITE_ROW ? 1 : result == SQLITE_DONE ? 0 : -EIO;
}

/* Whether the catalog has the row; says so when it does not. */
static bool check_row(struct verifier *verifier, enum catalog_row kind, uint32_t id)
{
    static const char *const names[] = {[ROW_SITE] = "call site", [ROW_FUNCTION] = "function"};
    int found = has_row(verifier, kind, id);

    if (!found)
        problem(verifier, "it names %s %u, which the catalog does not have", names[kind], id);
    else if (found < 0)
        problem(verifier, "its %ss cannot be looked up: %.140s", names[kind], sqlite3_errmsg(verifier->db));
    return found > 0;
}

/* The first site of a segment's dictionary that the catalog does not have is a problem. */
static int check_sites(struct verifier *verifier, const struct segment_parts *parts)
{
    const struct section *section = &parts->sections[SECTION_SITE_DICTIONARY];
    AUTO_FREE uint32_t *sites = NULL;
    size_t count;
    int code;

    if (!(parts->flags & SEGMENT_CALL_SITES))
        return 0;
    code = dictionary_read(section->data, section->size, 0, &sites, &count);
    for (size_t i = 0; !code && i < count; i++)
        if (sites[i] && !check_row(verifier, ROW_SITE, sites[i]))
            break;
    return code;
}

/* The same for functions. */
static void check_functions(struct verifier *verifier)
{
    for (size_t i = 0; i < verifier->census.table_size; i++) {
        uint32_t function = verifier->census.table[i].function;

        if (function && function != TRACESTORE_LOST_FUNCTION && !check_row(verifier, ROW_FUNCTION, function))
            return;
    }
}

/* ------------------------------------------------------------------------------------------ decoding */

static bool same_open_calls(const struct verifier *verifier, const struct open_call *open, size_t depth)
{
    if (depth != verifier->depth)
        return false;
    for (size_t i = 0; i < depth; i++)
        if (open[i].seq != verifier->open[i].seq || open[i].function != verifier->open[i].function ||
            open[i].assumed != verifier->open[i].assumed ||
            (open[i].site && open[i].site != verifier->open[i].site)) /* it may become unknown */
            return false;
    return true;
}

/* Decodes a segment, counts its calls by function, and keeps what it leaves open. */
static int decode_all(struct verifier *verifier, const struct segment_parts *parts, uint64_t first_seq,
                      uint64_t event_count)
{
    struct segment_decoder *decoder;
    const struct open_call *open;
    struct event event;
    size_t depth;
    int code = segment_decoder_open(parts, first_seq, event_count, 0, true, &decoder);

    if (code)
        return code;
    open = segment_decoder_open_calls(decoder, &depth);
    if (verifier->open_known && !same_open_calls(verifier, open, depth))
        problem(verifier, "it does not begin inside the calls that the segment before it left open");
    census_clear(&verifier->census);
    code = 0;
    while (!code && (code = segment_decoder_next(decoder, &event)) == 0)
        code = census_add(&verifier->census, &event);
    open = segment_decoder_open_calls(decoder, &depth);
    verifier->open_known = code == 1;
    if (code == 1)
        check_functions(verifier);
    if (code == 1 && check_sites(verifier, parts) == -ENOMEM)
        code = -ENOMEM;
    if (code == 1 && array_reserve(&verifier->open, &verifier->capacity, depth))
        code = -ENOMEM;
    if (code == 1) {
        if (depth)
            memcpy(verifier->open, open, depth * sizeof(*open));
        verifier->depth = depth;
    }
    segment_decoder_free(decoder);
    return code == 1 ? 0 : code;
}

static void begin_thread(struct verifier *verifier, int64_t thread_id)
{
    verifier->thread_id = thread_id;
    verifier->next_seq = 0;
    verifier->depth = 0;
    verifier->open_known = true;
}

/* Whether a loss of cause 'damaged' tells of so many missing events of the thread: recovering has left it. */
static bool gap_is_told(struct verifier *verifier, uint64_t count)
{
    int64_t told = 0;
    int code = db_number(verifier->db, what, &told, NULL,
                         "SELECT count(*) FROM losses WHERE run_id = ?1 AND thread_id = ?2 AND count = ?3"
                         " AND cause = 'damaged'",
                         "iii", verifier->place.run_id, verifier->thread_id, (int64_t)count);

    return !code && told;
}

static void check_place(struct verifier *verifier, uint64_t first_seq)
{
    if (first_seq == verifier->next_seq)
        return;
    verifier->open_known = false;
    if (first_seq > verifier->next_seq && gap_is_told(verifier, first_seq - verifier->next_seq))
        return;
    problem(verifier, "it begins at event %llu, not %llu: a segment is missing",
            (unsigned long long)first_seq, (unsigned long long)verifier->next_seq);
}

/* ------------------------------------------------------------------------------------------ segments */

/* The columns of SEGMENTS_SQL. */
enum { SEGMENT_ID, RUN_ID, THREAD_ID, FIRST_SEQ, EVENT_COUNT, CODEC, CHECKSUM, THREAD_RUN, DATA };
#define SEGMENTS_SQL \
    "SELECT segment_id, s.run_id, s.thread_id, first_seq, event_count, codec, checksum," \
    " t.run_id, data FROM segments s LEFT JOIN threads t ON t.thread_id = s.thread_id" \
    " ORDER BY s.thread_id, first_seq"

/* What the store says of the functions of the segment that has been decoded. */
static void check_counts(struct verifier *verifier, int64_t segment_id)
{
    struct segment_counts *counts = &verifier->counts;
    struct function_calls function;
    struct error err = {0};
    uint64_t calls = 0;
    size_t functions = 0;
    int code;

    segment_counts_select(counts, segment_id);
    while ((code = segment_counts_next(counts, &function, &err)) == 0) {
        const struct function_calls *counted = census_find(&verifier->census, function.function);

        calls += function.calls;
        functions += counted && counted->calls == function.calls;
    }
    if (code < 0)
        problem(verifier, "%.190s", err.message);
    else if (calls != verifier->census.calls)
        problem(verifier, "it has %llu calls, but segment_functions says %llu",
                (unsigned long long)verifier->census.calls, (unsigned long long)calls);
    else if (functions != verifier->census.count)
        problem(verifier, "segment_functions does not have its functions, or not their numbers of calls");
}

static int check_payload(struct verifier *verifier, sqlite3_stmt *row)
{
    const uint8_t *data = sqlite3_column_blob(row, DATA);
    size_t size = (size_t)sqlite3_column_bytes(row, DATA);
    struct segment_parts parts;
    AUTO_BYTES room = {0};
    int code;

    if (crc32(0, data, (uInt)size) != (uint32_t)sqlite3_column_int64(row, CHECKSUM)) {
        problem(verifier, "its checksum is wrong");
        return -EBADMSG;
    }
    code = segment_parse(data, size, &room, &parts);
    if (!code && parts.codec != sqlite3_column_int(row, CODEC))
        code = -EBADMSG;
    if (!code)
        code = decode_all(verifier, &parts, (uint64_t)sqlite3_column_int64(row, FIRST_SEQ),
                          (uint64_t)sqlite3_column_int64(row, EVENT_COUNT));
    if (code == -ENOTSUP)
        problem(verifier, "it was written by a newer tracectl and cannot be checked");
    else if (code && code != -ENOMEM)
        problem(verifier, "it cannot be decoded");
    return code;
}

static int check_segment(struct verifier *verifier, sqlite3_stmt *row)
{
    int64_t thread_id = sqlite3_column_int64(row, THREAD_ID);
    uint64_t first_seq = (uint64_t)sqlite3_column_int64(row, FIRST_SEQ);
    int code;

    if (thread_id != verifier->thread_id)
        begin_thread(verifier, thread_id);
    verifier->segments++;
    verifier->place = (struct tracestore_problem){
        .run_id = sqlite3_column_int64(row, RUN_ID),
        .thread_id = thread_id,
        .segment_id = sqlite3_column_int64(row, SEGMENT_ID),
    };
    check_place(verifier, first_seq);
    verifier->next_seq = first_seq + (uint64_t)sqlite3_column_int64(row, EVENT_COUNT);
    if (sqlite3_column_int64(row, THREAD_RUN) != verifier->place.run_id)
        problem(verifier, "its thread belongs to another run");
    code = check_payload(verifier, row);
    if (code) {
        verifier->open_known = false;
        return code == -ENOMEM ? code : 0;
    }
    check_counts(verifier, verifier->place.segment_id);
    return 0;
}

static int check_segments(struct verifier *verifier)
{
    AUTO_STATEMENT *row = NULL;
    int result = sqlite3_prepare_v2(verifier->db, SEGMENTS_SQL, -1, &row, NULL), code = 0;

    if (result == SQLITE_OK)
        while ((result = sqlite3_step(row)) == SQLITE_ROW && !code)
            code = check_segment(verifier, row);
    verifier->place = (struct tracestore_problem){0};
    if (!code && result != SQLITE_DONE)
        problem(verifier, "the segments cannot all be read: %.140s", sqlite3_errmsg(verifier->db));
    return code;
}

/* ------------------------------------------------------------------------------------------ journal */

static int check_tail(void *context, int64_t thread_id, const struct journal_tail *tail)
{
    struct verifier *verifier = context;
    struct segment_parts parts = journal_tail_parts(tail);
    uint64_t counted = 0;
    int code;

    verifier->place.thread_id = thread_id;
    begin_thread(verifier, thread_id);
    verifier->open_known = false;
    code = decode_all(verifier, &parts, tail->first_seq, tail->event_count);
    if (code == -ENOMEM)
        return code;
    for (size_t i = 0; i < tail->call_count; i++)
        counted += tail->calls[i];
    if (code)
        problem(verifier, "its open segment in the journal cannot be decoded");
    else if (verifier->census.calls != counted)
        problem(verifier, "its open segment has %llu calls, but the journal says %llu",
                (unsigned long long)verifier->census.calls, (unsigned long long)counted);
    return 0;
}

static int check_journals(struct verifier *verifier)
{
    AUTO_STATEMENT *row = NULL;
    int result = sqlite3_prepare_v2(verifier->db, "SELECT DISTINCT run_id FROM journal", -1, &row, NULL);

    while (result == SQLITE_OK && (result = sqlite3_step(row)) == SQLITE_ROW) {
        struct error err = {0};
        int64_t run_id = sqlite3_column_int64(row, 0);
        int code;

        verifier->place = (struct tracestore_problem){.run_id = run_id};
        code = journal_visit_tails(verifier->db, run_id, check_tail, verifier, &err);
        verifier->place = (struct tracestore_problem){.run_id = run_id};
        if (code == -ENOMEM)
            return code;
        if (code)
            problem(verifier, "%.180s", err.message);
        result = SQLITE_OK;
    }
    verifier->place = (struct tracestore_problem){0};
    if (result != SQLITE_DONE)
        problem(verifier, "the journal cannot be read: %.140s", sqlite3_errmsg(verifier->db));
    return 0;
}

static int check_processes(struct verifier *verifier)
{
    struct process_verification verification = {
        .db = verifier->db, .report = verifier->report, .context = verifier->context};
    int code = verify_process_segments(&verification);

    verifier->problems += verification.problems;
    verifier->segments += verification.segments;
    return code;
}

int tracestore_verify(struct tracestore *store,
                      void (*report)(void *context, const struct tracestore_problem *), void *context,
                      uint64_t *ret_segments, struct error *err)
{
    struct verifier verifier = {.db = store->db, .report = report, .context = context};
    int code = db_exec(store->db, "BEGIN", what, err);

    if (code)
        return code;
    check_database(&verifier);
    code = check_columns(&verifier);
    if (!code)
        code = segment_counts_open(&verifier.counts, store->db, COUNTS_OF_SEGMENT, err);
    if (!code)
        code = check_segments(&verifier);
    if (!code)
        code = check_journals(&verifier);
    if (!code)
        code = check_processes(&verifier);
    sqlite3_exec(store->db, "COMMIT", NULL, NULL, NULL);
    sqlite3_finalize(verifier.find[ROW_SITE]);
    sqlite3_finalize(verifier.find[ROW_FUNCTION]);
    segment_counts_close(&verifier.counts);
    census_release(&verifier.census);
    free(verifier.open);
    if (code)
        return code == -ENOMEM ? error_no_memory(err) : code;
    if (ret_segments)
        *ret_segments = verifier.segments;
    return verifier.problems;
}
