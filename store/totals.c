/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sums over runs, from the catalog and from the counts in the journal: nothing is decoded. */
#include <errno.h>

#include "base/error.h"
#include "store/catalog_bytes.h"
#include "store/db/store.h"
#include "store/segment/journal_counts.h"
#include "store/segment/segment_counts.h"
#include "store/streams/go_functions.h"

static const char what[] = "cannot read the catalog";

/* --------------------------------------------------------------------------------------- called functions */

/* The functions that the run's events name: those that only return or stand for losses have 0 calls. Without
 * `in_journal` those of its segments only. */
static int take_functions(struct segment_counts *segments, sqlite3 *db, int64_t run_id, bool in_journal,
                          struct census *functions, uint64_t *ret_segment_calls, struct error *err)
{
    AUTO_JOURNAL_COUNTS journal = {0};
    int code;

    segment_counts_select(segments, run_id);
    code = segment_counts_sum(segments, functions, err);
    segment_counts_rewind(segments);
    if (code)
        return code;
    *ret_segment_calls = functions->calls;
    if (in_journal)
        code = journal_counts_read(&journal, db, run_id, err);
    for (size_t i = 0; i < journal.count && !code; i++)
        if (census_add_calls(functions, journal.counts[i].function, journal.counts[i].calls))
            code = error_no_memory(err);
    return code;
}

int store_called_functions(sqlite3 *db, int64_t run_id, uint32_t **ret_ids, size_t *ret_count,
                           struct error *err)
{
    AUTO_SEGMENT_COUNTS segments = {0};
    AUTO_CENSUS functions = {0};
    AUTO_FREE struct function_calls *list = NULL;
    AUTO_FREE uint32_t *ids = NULL;
    uint64_t calls;
    size_t count = 0;
    int code = segment_counts_open(&segments, db, COUNTS_OF_RUN, err);

    if (!code)
        code = take_functions(&segments, db, run_id, true, &functions, &calls, err);
    if (code)
        return code;
    list = calloc(functions.count + 1, sizeof(*list));
    ids = calloc(functions.count + 1, sizeof(*ids));
    if (!list || !ids)
        return error_no_memory(err);
    census_list(&functions, list);
    for (size_t i = 0; i < functions.count; i++)
        if (list[i].calls)
            ids[count++] = list[i].function;
    *ret_ids = take_pointer(ids);
    *ret_count = count;
    return 0;
}

/* ------------------------------------------------------------------------------------------ totals */

/* Losses whose extent is not known; a run that has not ended counts as one. */
#define UNKNOWN_LOSSES \
    "(SELECT count(*) FROM main.losses WHERE run_id = ?1 AND count IS NULL)" \
    " + (SELECT ended_ns IS NULL FROM main.runs WHERE run_id = ?1)"

/* Sums over a table each: a join of them would make SQLite open a temporary table for each run. */
enum question { ASK_SEGMENTS, ASK_STREAMS, ASK_OTHERS, QUESTIONS };

enum sum {
    SUM_EVENTS,
    SUM_SEGMENTS,
    SUM_SEGMENT_BYTES,
    SUM_GO_EVENTS,
    SUM_SYNC_EVENTS,
    SUM_STREAM_BYTES,
    SUM_THREADS,
    SUM_JOURNAL_ROWS,
    SUM_JOURNAL_BYTES,
    SUM_LOST,
    SUM_LOST_EVENTS,
    SUM_UNKNOWN,
    SUM_MUTED,
    SUM_WAITED,
    SUMS,
};

/* ?1: the run. The columns are sums from `first` on. */
static const struct asked {
    enum sum first;
    const char *types, *sql;
} questions[QUESTIONS] = {
    [ASK_SEGMENTS] =
        {SUM_EVENTS, "III",
         "SELECT sum(event_count), count(*), sum(length(data)) FROM main.segments WHERE run_id = ?1"},
    [ASK_STREAMS] =
        {SUM_GO_EVENTS, "III",
         "SELECT sum(event_count) FILTER (WHERE stream = 1), sum(event_count) FILTER (WHERE stream = 2),"
         " sum(length(data)) FROM main.process_segments WHERE run_id = ?1 AND stream IN (1, 2)"},
    [ASK_OTHERS] =
        {SUM_THREADS, "IIIIIIII",
         "SELECT (SELECT count(*) FROM main.threads t WHERE run_id = ?1 AND EXISTS"
         "  (SELECT 1 FROM main.segments s WHERE s.thread_id = t.thread_id AND s.run_id = ?1)),"
         " (SELECT count(*) FROM main.journal WHERE run_id = ?1),"
         " (SELECT sum(length(data)) FROM main.journal WHERE run_id = ?1),"
         " (SELECT sum(count) FROM main.losses WHERE run_id = ?1),"
         " (SELECT count(seq) FROM main.losses WHERE run_id = ?1), " UNKNOWN_LOSSES ","
         " (SELECT count(DISTINCT function_id) FROM main.blind WHERE run_id = ?1),"
         " (SELECT CAST(value AS INTEGER) FROM main.tags WHERE run_id = ?1 AND key = 'waited ns')"},
};

struct tracestore_totals_reader {
    struct tracestore *store;
    unsigned parts;
    bool own_snapshot;
    sqlite3_stmt *questions[QUESTIONS];
    struct segment_counts segments; /* with TRACESTORE_CALLS */
};

static int read_sums(struct tracestore_totals_reader *reader, int64_t run_id, int64_t sums[SUMS],
                     struct error *err)
{
    for (int i = 0; i < QUESTIONS; i++) {
        const struct asked *asked = &questions[i];
        sqlite3_stmt *row = reader->questions[i];
        int code = 0;

        db_bind(row, "i", run_id);
        if (db_row(row, asked->types) != SQLITE_ROW)
            code = db_fail(reader->store->db, err, what);
        for (int column = 0; asked->types[column] && !code; column++)
            sums[asked->first + column] = sqlite3_column_int64(row, column);
        sqlite3_reset(row);
        if (code)
            return code;
    }
    return 0;
}

struct tails {
    struct tracestore_totals *totals;
    bool with_calls;
};

static int add_tail(void *context, int64_t thread_id, const struct journal_tail *tail)
{
    struct tails *tails = context;

    tails->totals->events += tail->event_count;
    for (size_t i = 0; i < tail->call_count && tails->with_calls; i++)
        tails->totals->calls += tail->calls[i];
    if (!tail->first_seq) /* without a segment it has not been counted yet */
        tails->totals->threads++;
    return 0;
}

static uint64_t count_called(const struct census *functions)
{
    uint64_t called = 0;

    for (size_t i = 0; i < functions->table_size; i++)
        called += functions->table[i].calls > 0;
    return called;
}

static void fill(struct tracestore_totals *totals, const int64_t sums[SUMS])
{
    totals->events = (uint64_t)sums[SUM_EVENTS];
    totals->lost = (uint64_t)sums[SUM_LOST];
    totals->go_events = (uint64_t)sums[SUM_GO_EVENTS];
    totals->sync_events = (uint64_t)sums[SUM_SYNC_EVENTS];
    totals->threads = (uint64_t)sums[SUM_THREADS];
    totals->muted_functions = (uint64_t)sums[SUM_MUTED];
    totals->segments = (uint64_t)sums[SUM_SEGMENTS];
    totals->stored_bytes =
        (uint64_t)(sums[SUM_SEGMENT_BYTES] + sums[SUM_JOURNAL_BYTES] + sums[SUM_STREAM_BYTES]);
    totals->waited_ns = (uint64_t)sums[SUM_WAITED];
    totals->loss_unknown = sums[SUM_UNKNOWN];
    totals->complete = !totals->loss_unknown && !totals->lost && !totals->muted_functions;
}

static int add_catalog(sqlite3 *db, int64_t run_id, struct census *functions,
                       struct tracestore_totals *totals, struct error *err)
{
    struct catalog_bytes bytes = {0};
    int code = go_functions_take(db, run_id, functions, err);

    if (!code)
        code = catalog_bytes_count(db, run_id, functions, &bytes, err);
    totals->catalog_bytes = bytes.rows + bytes.indexes;
    totals->index_bytes = bytes.indexes;
    return code;
}

int tracestore_totals_read(struct tracestore_totals_reader *reader, int64_t run_id,
                           struct tracestore_totals *ret_totals, struct error *err)
{
    struct tracestore_totals totals = {0};
    struct tails tails = {&totals, reader->parts & TRACESTORE_CALLS};
    AUTO_CENSUS functions = {0};
    sqlite3 *db = reader->store->db;
    int64_t sums[SUMS] = {0};
    int code = read_sums(reader, run_id, sums, err);

    fill(&totals, sums);
    if (!code && tails.with_calls)
        code = take_functions(&reader->segments, db, run_id, sums[SUM_JOURNAL_ROWS], &functions,
                              &totals.calls, err);
    if (!code && sums[SUM_JOURNAL_ROWS])
        code = journal_visit_tails(db, run_id, add_tail, &tails, err);
    if (!code && reader->parts & TRACESTORE_CATALOG)
        code = add_catalog(db, run_id, &functions, &totals, err);
    if (code)
        return code;
    totals.raw_bytes = 2 * totals.events;
    if (tails.with_calls) {
        totals.functions = count_called(&functions);
        totals.returns = totals.events - totals.calls - (uint64_t)sums[SUM_LOST_EVENTS];
    }
    *ret_totals = totals;
    return 0;
}

void tracestore_totals_close(struct tracestore_totals_reader *reader)
{
    if (!reader)
        return;
    for (int i = 0; i < QUESTIONS; i++)
        sqlite3_finalize(reader->questions[i]);
    segment_counts_close(&reader->segments);
    if (reader->own_snapshot)
        sqlite3_exec(reader->store->db, "COMMIT", NULL, NULL, NULL);
    free(reader);
}

/* All runs in one snapshot, so that one that is being recorded adds up. */
int tracestore_totals_open(struct tracestore *store, unsigned parts,
                           struct tracestore_totals_reader **ret_reader, struct error *err)
{
    AUTO_TOTALS_READER *reader = calloc(1, sizeof(*reader));
    bool own_snapshot = sqlite3_get_autocommit(store->db);
    int code = 0;

    if (!reader)
        return error_no_memory(err);
    reader->store = store;
    reader->parts = parts & TRACESTORE_CATALOG ? parts | TRACESTORE_CALLS : parts;
    if (own_snapshot)
        code = db_exec(store->db, "BEGIN", what, err);
    reader->own_snapshot = own_snapshot && !code;
    for (int i = 0; i < QUESTIONS && !code; i++)
        code = db_prepare(store->db, questions[i].sql, what, &reader->questions[i], err);
    if (!code && reader->parts & TRACESTORE_CALLS)
        code = segment_counts_open(&reader->segments, store->db, COUNTS_OF_RUN, err);
    if (!code)
        *ret_reader = take_pointer(reader);
    return code;
}

int tracestore_run_totals(struct tracestore *store, int64_t run_id, struct tracestore_totals *ret_totals,
                          struct error *err)
{
    AUTO_TOTALS_READER *reader = NULL;
    int code = tracestore_totals_open(store, TRACESTORE_CALLS | TRACESTORE_CATALOG, &reader, err);

    return reader ? tracestore_totals_read(reader, run_id, ret_totals, err) : code;
}
