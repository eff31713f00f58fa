/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/order/recorded_states.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "store/db/db.h"

static int compare_labels(const void *left, const void *right)
{
    const struct recorded_state *a = left, *b = right;

    return (a->label > b->label) - (a->label < b->label);
}

static int read_row(struct sample_set *set, struct recorded_states *states, sqlite3_stmt *row)
{
    struct recorded_state state;

    if (sample_set_text(set, (const char *)sqlite3_column_text(row, 0), &state.label) < 0 ||
        sample_set_text(set, (const char *)sqlite3_column_text(row, 1), &state.state) < 0 ||
        array_reserve(&states->items, &states->capacity, states->count + 1) < 0)
        return -ENOMEM;
    states->items[states->count++] = state;
    return 0;
}

int recorded_states_read(struct tracestore *store, int64_t run_id, struct sample_set *set,
                         struct recorded_states *states, struct error *err)
{
    static const char what[] = "cannot read the goroutines of the run";
    sqlite3 *db = tracestore_db(store);
    AUTO_STATEMENT *rows = NULL;
    int step = SQLITE_DONE;
    int r = db_prepare(db,
                       "SELECT label, coalesce(wait_reason, state) FROM goroutines "
                       "WHERE run_id = ?1 AND state NOT IN ('ended', 'unknown')",
                       what, &rows, err);

    memset(states, 0, sizeof(*states));
    if (r < 0)
        return r;
    if (db_bind(rows, "i", run_id) != SQLITE_OK)
        return db_fail(db, err, what);
    while (r == 0 && (step = db_row(rows, "tt")) == SQLITE_ROW)
        r = read_row(set, states, rows);
    if (r < 0)
        return error_no_memory(err), -ENOMEM;
    if (step != SQLITE_DONE)
        return db_fail(db, err, what);
    if (states->count)
        qsort(states->items, states->count, sizeof(*states->items), compare_labels);
    return 0;
}

void recorded_states_release(struct recorded_states *states)
{
    free(states->items);
    memset(states, 0, sizeof(*states));
}

uint32_t recorded_states_find(const struct recorded_states *states, uint32_t label)
{
    const struct recorded_state key = {.label = label};
    const struct recorded_state *found =
        states->count ? bsearch(&key, states->items, states->count, sizeof(key), compare_labels) : NULL;

    return found ? found->state : 0;
}
