/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sums over a run, from the catalog and from the counts in the journal: nothing is decoded. */
#include <errno.h>

#include "base/error.h"
#include "store/catalog_bytes.h"
#include "store/db/store.h"
#include "store/segment/journal_counts.h"
#include "store/segment/segment_counts.h"
#include "store/streams/go_functions.h"
#include "store/streams/process_events.h"

static const char what[] = "cannot read the catalog";

/* --------------------------------------------------------------------------------------- called functions */

/* The functions that the run's events name: those that only return or stand for losses have 0 calls. */
static int take_functions(sqlite3 *db, int64_t run_id, struct census *functions, uint64_t *ret_segment_calls,
                          struct error *err)
{
    AUTO_SEGMENT_COUNTS segments = {0};
    AUTO_JOURNAL_COUNTS journal = {0};
    int code = segment_counts_open(&segments, db, COUNTS_OF_RUN, err);

    if (code)
        return code;
    segment_counts_select(&segments, run_id);
    code = segment_counts_sum(&segments, functions, err);
    if (code)
        return code;
    *ret_segment_calls = functions->calls;
    code = journal_counts_read(&journal, db, run_id, err);
    for (size_t i = 0; i < journal.count && !code; i++)
        if (census_add_calls(functions, journal.counts[i].function, journal.counts[i].calls))
            code = error_no_memory(err);
    return code;
}

int store_called_functions(sqlite3 *db, int64_t run_id, uint32_t **ret_ids, size_t *ret_count,
                           struct error *err)
{
    AUTO_CENSUS functions = {0};
    AUTO_FREE struct function_calls *list = NULL;
    AUTO_FREE uint32_t *ids = NULL;
    uint64_t calls;
    size_t count = 0;
    int code = take_functions(db, run_id, &functions, &calls, err);

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

static int add_tail(void *context, int64_t thread_id, const struct journal_tail *tail)
{
    struct tracestore_totals *totals = context;

    totals->events += tail->event_count;
    for (size_t i = 0; i < tail->call_count; i++)
        totals->calls += tail->calls[i];
    if (!tail->first_seq) /* without a segment it has not been counted yet */
        totals->threads++;
    return 0;
}

/* Losses whose extent is not known; a run that has not ended counts as one. */
static const char unknown_losses_sql[] =
    "SELECT (SELECT count(*) FROM losses WHERE run_id = ?1 AND count IS NULL)"
    " + (SELECT ended_ns IS NULL FROM runs WHERE run_id = ?1)";

/* Each total that is the answer to one question. */
static int ask_numbers(sqlite3 *db, int64_t run_id, struct tracestore_totals *totals, int64_t *lost_events,
                       int64_t *unknown, struct error *err)
{
    int64_t answers[10];
    static const char *const questions[10] = {
        "SELECT sum(event_count) FROM segments WHERE run_id = ?1",
        "SELECT sum(count) FROM losses WHERE run_id = ?1",
        "SELECT count(DISTINCT thread_id) FROM segments WHERE run_id = ?1",
        "SELECT count(DISTINCT function_id) FROM blind WHERE run_id = ?1",
        "SELECT count(*) FROM segments WHERE run_id = ?1",
        "SELECT sum(length(data)) FROM segments WHERE run_id = ?1",
        "SELECT sum(length(data)) FROM journal WHERE run_id = ?1",
        "SELECT count(*) FROM losses WHERE run_id = ?1 AND seq NOTNULL",
        unknown_losses_sql,
        "SELECT CAST(value AS INTEGER) FROM tags WHERE run_id = ?1 AND key = 'waited ns'",
    };

    for (size_t i = 0; i < 10; i++) {
        int code = db_number(db, what, &answers[i], err, questions[i], "i", run_id);

        if (code)
            return code;
    }
    totals->events = (uint64_t)answers[0];
    totals->lost = (uint64_t)answers[1];
    totals->threads = (uint64_t)answers[2];
    totals->muted_functions = (uint64_t)answers[3];
    totals->segments = (uint64_t)answers[4];
    totals->stored_bytes = (uint64_t)(answers[5] + answers[6]);
    *lost_events = answers[7];
    *unknown = answers[8];
    totals->waited_ns = (uint64_t)answers[9];
    return 0;
}

/* The events of one stream: their number, and what is stored of them. */
static int add_stream(sqlite3 *db, int64_t run_id, enum process_stream stream, uint64_t *ret_events,
                      uint64_t *stored_bytes, struct error *err)
{
    int64_t events = 0, bytes = 0;
    int code = db_number(db, what, &events, err,
                         "SELECT sum(event_count) FROM process_segments WHERE run_id = ?1 AND stream = ?2",
                         "ii", run_id, (int64_t)stream);

    if (!code)
        code = db_number(db, what, &bytes, err,
                         "SELECT sum(length(data)) FROM process_segments WHERE run_id = ?1 AND stream = ?2",
                         "ii", run_id, (int64_t)stream);
    *ret_events = (uint64_t)events;
    *stored_bytes += (uint64_t)bytes;
    return code;
}

static uint64_t count_called(const struct census *functions)
{
    uint64_t called = 0;

    for (size_t i = 0; i < functions->table_size; i++)
        called += functions->table[i].calls > 0;
    return called;
}

/* All of it in one snapshot, so that a run that is being recorded adds up. */
static int sum_up(struct tracestore *store, int64_t run_id, struct tracestore_totals *totals,
                  struct error *err)
{
    AUTO_CENSUS functions = {0};
    struct catalog_bytes bytes = {0};
    int64_t lost_events, unknown;
    int code = ask_numbers(store->db, run_id, totals, &lost_events, &unknown, err);

    if (!code)
        code =
            add_stream(store->db, run_id, PROCESS_STREAM_GO, &totals->go_events, &totals->stored_bytes, err);
    if (!code)
        code = add_stream(store->db, run_id, PROCESS_STREAM_SYNC, &totals->sync_events, &totals->stored_bytes,
                          err);
    if (!code)
        code = take_functions(store->db, run_id, &functions, &totals->calls, err);
    if (!code)
        code = go_functions_take(store->db, run_id, &functions, err);
    if (!code)
        code = journal_visit_tails(store->db, run_id, add_tail, totals, err);
    if (!code)
        code = catalog_bytes_count(store->db, run_id, &functions, &bytes, err);
    if (code)
        return code;
    totals->functions = count_called(&functions);
    totals->catalog_bytes = bytes.rows + bytes.indexes;
    totals->index_bytes = bytes.indexes;
    totals->returns = totals->events - totals->calls - (uint64_t)lost_events;
    totals->raw_bytes = 2 * totals->events;
    totals->loss_unknown = unknown;
    totals->complete = !unknown && !totals->lost && !totals->muted_functions;
    return 0;
}

int tracestore_run_totals(struct tracestore *store, int64_t run_id, struct tracestore_totals *ret_totals,
                          struct error *err)
{
    struct tracestore_totals totals = {0};
    bool own_snapshot = sqlite3_get_autocommit(store->db);
    int code = own_snapshot ? db_exec(store->db, "BEGIN", what, err) : 0;

    if (code)
        return code;
    code = sum_up(store, run_id, &totals, err);
    if (own_snapshot)
        sqlite3_exec(store->db, "COMMIT", NULL, NULL, NULL);
    if (!code)
        *ret_totals = totals;
    return code;
}
