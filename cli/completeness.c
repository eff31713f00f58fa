/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/completeness.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cli/output.h"

/* A share is only known when every row of `blind` has been counted. Functions that cannot be probed at all
 * have rows that begin at 0, and are not among those that the budget knows. */
static const char questions[] =
    "SELECT (SELECT CAST(value AS INTEGER) FROM tags WHERE run_id = ?1 AND key = 'budget: functions'),"
    " count(DISTINCT function_id), min(nullif(from_ns, 0)),"
    " (SELECT sum(calls) FROM function_calls WHERE run_id = ?1),"
    " CASE WHEN count(*) = count(missed) THEN sum(missed) END,"
    " count(DISTINCT CASE WHEN from_ns = 0 THEN function_id END) FROM " BLIND_ROWS " WHERE run_id = ?1";

int completeness_read(struct tracestore *store, int64_t run_id, struct completeness *ret_completeness,
                      struct error *err)
{
    AUTO_STATEMENT sqlite3_stmt *row = NULL;
    struct completeness answer = {.functions = -1, .missed = -1};
    int r = cli_prepare(store, &row, err, questions, 1, run_id);

    if (r == 0)
        r = cli_step(row, err);
    if (r < 0)
        return r;
    if (sqlite3_column_type(row, 0) != SQLITE_NULL)
        answer.functions = sqlite3_column_int64(row, 0) + sqlite3_column_int64(row, 5);
    answer.blind = sqlite3_column_int64(row, 1);
    answer.since_ns = sqlite3_column_int64(row, 5) ? 0 : (uint64_t)sqlite3_column_int64(row, 2);
    answer.calls = sqlite3_column_int64(row, 3);
    if (sqlite3_column_type(row, 4) != SQLITE_NULL)
        answer.missed = sqlite3_column_int64(row, 4);
    *ret_completeness = answer;
    return 0;
}

void completeness_text(const struct completeness *completeness, char *text, size_t size)
{
    char functions[32], complete[32], blind[32], time[64] = "the beginning", share[64];

    *text = '\0';
    if (!completeness->blind)
        return;
    cli_format_count((uint64_t)completeness->blind, blind, sizeof(blind));
    if (completeness->since_ns)
        cli_format_time(completeness->since_ns, 3, time, sizeof(time));
    if (completeness->missed >= 0)
        snprintf(share, sizeof(share), "%.2f %% of all calls recorded",
                 100.0 * (double)completeness->calls /
                     (double)(completeness->calls + completeness->missed
                                  ? completeness->calls + completeness->missed
                                  : 1));
    else
        snprintf(share, sizeof(share), "not all of their calls counted");
    if (completeness->functions < 0) {
        snprintf(text, size, "all but %s functions, blind since %s, %s", blind, time, share);
        return;
    }
    cli_format_count((uint64_t)completeness->functions, functions, sizeof(functions));
    cli_format_count((uint64_t)(completeness->functions - completeness->blind), complete, sizeof(complete));
    snprintf(text, size, "%s of %s functions; %s blind since %s, %s", complete, functions, blind, time,
             share);
}
