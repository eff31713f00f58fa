/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sums over a run, from the catalog and from the counts in the journal: nothing is decoded. */
#include <errno.h>

#include "store/journal.h"
#include "store/store.h"

static const char what[] = "cannot read the catalog";

/* --------------------------------------------------------------------------------------- called functions */

struct id_list {
    uint32_t *ids;
    size_t count, capacity;
};

static int add_id(struct id_list *list, uint32_t id)
{
    if (array_reserve(&list->ids, &list->capacity, list->count + 1))
        return -ENOMEM;
    list->ids[list->count++] = id;
    return 0;
}

static int compare_ids(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

static int add_tail_functions(void *context, int64_t thread_id, const struct journal_tail *tail)
{
    AUTO_FREE uint32_t *functions = NULL;
    const struct section dictionary = {tail->sections[SECTION_DICTIONARY].data,
                                       tail->sections[SECTION_DICTIONARY].size};
    size_t count;
    int code = segment_dictionary(&dictionary, &functions, &count);

    for (size_t i = 0; i < tail->call_count && !code; i++)
        if (tail->calls[i])
            code = i < count ? add_id(context, functions[i]) : -EBADMSG;
    return code;
}

static int add_segment_functions(sqlite3 *db, int64_t run_id, struct id_list *list, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int result = SQLITE_ROW, code = db_prepare(db,
                                               "SELECT DISTINCT function_id FROM segments"
                                               " JOIN segment_functions USING (segment_id)"
                                               " WHERE run_id = ?1 AND calls > 0",
                                               what, &row, err);

    if (code)
        return code;
    db_bind(row, "i", run_id);
    while (!code && (result = sqlite3_step(row)) == SQLITE_ROW)
        code = add_id(list, (uint32_t)sqlite3_column_int64(row, 0));
    if (code)
        return error_no_memory(err);
    return result == SQLITE_DONE ? 0 : db_fail(db, err, what);
}

int store_called_functions(sqlite3 *db, int64_t run_id, uint32_t **ret_ids, size_t *ret_count,
                           struct error *err)
{
    struct id_list list = {0};
    size_t kept = 0;
    int code = add_segment_functions(db, run_id, &list, err);

    if (!code)
        code = journal_visit_tails(db, run_id, add_tail_functions, &list, err);
    if (code) {
        free(list.ids);
        return code;
    }
    if (list.count)
        qsort(list.ids, list.count, sizeof(*list.ids), compare_ids);
    for (size_t i = 0; i < list.count; i++)
        if (!i || list.ids[i] != list.ids[i - 1])
            list.ids[kept++] = list.ids[i];
    *ret_ids = list.ids;
    *ret_count = kept;
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

/* The functions with an event in this run's segments. */
#define RUN_FUNCTIONS \
    "(SELECT function_id FROM segments JOIN segment_functions USING (segment_id) WHERE run_id = ?1)"

/* Whether a thread of the run keeps call sites: SEGMENT_CALL_SITES in the third byte of its first segment. */
#define RUN_HAS_SITES \
    "EXISTS (SELECT 1 FROM segments WHERE run_id = ?1 AND first_seq = 0" \
    " AND instr('2367ABEF', substr(hex(substr(data, 3, 1)), 2)))"

/* Bytes of the values in this run's rows: texts as they are, 4 for a number and 8 for a time. Call sites are
 * those in its functions and in unknown ones: which of them it has come by only its segments say. */
static const char catalog_bytes_sql[] =
    "SELECT (SELECT 24 + length(name) + length(command) + length(host) + length(kernel) + length(options)"
    "  + length(tool_version) + length(recorder) FROM runs WHERE run_id = ?1)"
    " + (SELECT coalesce(sum(4 + length(key) + length(value)), 0) FROM tags WHERE run_id = ?1)"
    " + (SELECT coalesce(sum(36 + length(exe) + length(argv)), 0) FROM processes WHERE run_id = ?1)"
    " + (SELECT coalesce(sum(32 + length(label) + length(name) + length(returns)), 0) FROM threads"
    "  WHERE run_id = ?1)"
    " + (SELECT count(*) * 44 FROM segments WHERE run_id = ?1)"
    " + (SELECT count(*) * 12 FROM segments JOIN segment_functions USING (segment_id) WHERE run_id = ?1)"
    " + (SELECT coalesce(sum(24 + length(cause)), 0) FROM losses WHERE run_id = ?1)"
    " + (SELECT coalesce(sum(32 + length(cause)), 0) FROM blind WHERE run_id = ?1)"
    " + (SELECT coalesce(sum(28 + length(name) + coalesce(length(demangled), 0) + coalesce(length(file), "
    "0)), 0)"
    "  FROM functions WHERE function_id IN " RUN_FUNCTIONS
    ")"
    " + (SELECT coalesce(sum(20 + coalesce(length(file), 0)), 0) FROM call_sites"
    "  WHERE (function_id IS NULL OR function_id IN " RUN_FUNCTIONS ") AND " RUN_HAS_SITES ")";

/* Losses whose extent is not known; a run that has not ended counts as one. */
static const char unknown_losses_sql[] =
    "SELECT (SELECT count(*) FROM losses WHERE run_id = ?1 AND count IS NULL)"
    " + (SELECT ended_ns IS NULL FROM runs WHERE run_id = ?1)";

/* Each total that is the answer to one question. */
static int ask_numbers(sqlite3 *db, int64_t run_id, struct tracestore_totals *totals, int64_t *lost_events,
                       int64_t *unknown, struct error *err)
{
    int64_t journal_bytes = 0, answers[11];
    static const char *const questions[11] = {
        "SELECT sum(event_count) FROM segments WHERE run_id = ?1",
        "SELECT sum(calls) FROM segments JOIN segment_functions USING (segment_id) WHERE run_id = ?1",
        "SELECT sum(count) FROM losses WHERE run_id = ?1",
        "SELECT count(DISTINCT thread_id) FROM segments WHERE run_id = ?1",
        "SELECT count(DISTINCT function_id) FROM blind WHERE run_id = ?1",
        "SELECT count(*) FROM segments WHERE run_id = ?1",
        "SELECT sum(length(data)) FROM segments WHERE run_id = ?1",
        "SELECT sum(length(data)) FROM journal WHERE run_id = ?1",
        catalog_bytes_sql,
        "SELECT count(*) FROM losses WHERE run_id = ?1 AND seq NOTNULL",
        unknown_losses_sql,
    };

    for (size_t i = 0; i < 11; i++) {
        int code = db_number(db, what, &answers[i], err, questions[i], "i", run_id);

        if (code)
            return code;
    }
    journal_bytes = answers[7];
    totals->events = (uint64_t)answers[0];
    totals->calls = (uint64_t)answers[1];
    totals->lost = (uint64_t)answers[2];
    totals->threads = (uint64_t)answers[3];
    totals->muted_functions = (uint64_t)answers[4];
    totals->segments = (uint64_t)answers[5];
    totals->stored_bytes = (uint64_t)(answers[6] + journal_bytes);
    totals->catalog_bytes = (uint64_t)answers[8];
    *lost_events = answers[9];
    *unknown = answers[10];
    return 0;
}

/* All of it in one snapshot, so that a run that is being recorded adds up. */
static int sum_up(struct tracestore *store, int64_t run_id, struct tracestore_totals *totals,
                  struct error *err)
{
    AUTO_FREE uint32_t *functions = NULL;
    int64_t lost_events, unknown;
    size_t function_count;
    int code = ask_numbers(store->db, run_id, totals, &lost_events, &unknown, err);

    if (!code)
        code = journal_visit_tails(store->db, run_id, add_tail, totals, err);
    if (!code)
        code = store_called_functions(store->db, run_id, &functions, &function_count, err);
    if (code)
        return code;
    totals->functions = function_count;
    totals->returns = totals->events - totals->calls - (uint64_t)lost_events;
    totals->raw_bytes = 2 * totals->events;
    totals->complete = !unknown;
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
