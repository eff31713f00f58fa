/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/segment/journal_counts.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "store/api/tracestore.h"

static int take_tail(void *context, int64_t thread_id, const struct journal_tail *tail)
{
    struct journal_counts *counts = context;
    AUTO_FREE uint32_t *functions = NULL;
    size_t function_count = 0;
    struct segment_parts parts = journal_tail_parts(tail);
    int code = segment_dictionary(&parts.sections[SECTION_DICTIONARY], &functions, &function_count);

    if (code)
        return code;
    if (array_reserve(&counts->counts, &counts->capacity, counts->count + function_count))
        return -ENOMEM;
    for (size_t i = 0; i < function_count && i < tail->call_count; i++)
        if (tail->calls[i] && functions[i] != TRACESTORE_LOST_FUNCTION)
            counts->counts[counts->count++] = (struct journal_count){thread_id, functions[i], tail->calls[i]};
    return 0;
}

static int compare_counts(const void *left, const void *right)
{
    const struct journal_count *a = left, *b = right;

    if (a->thread_id != b->thread_id)
        return a->thread_id < b->thread_id ? -1 : 1;
    return a->function < b->function ? -1 : a->function > b->function;
}

int journal_counts_read(struct journal_counts *counts, sqlite3 *db, int64_t run_id, struct error *err)
{
    int code;

    counts->count = 0;
    error_say(err, -EBADMSG, "reading the journal of run %lld: damaged", (long long)run_id);
    code = journal_visit_tails(db, run_id, take_tail, counts, err);
    if (!code && counts->count)
        qsort(counts->counts, counts->count, sizeof(*counts->counts), compare_counts);
    return code;
}

void journal_counts_release(struct journal_counts *counts)
{
    free(counts->counts);
    *counts = (struct journal_counts){0};
}
