/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/common/completeness.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "cli/common/output.h"

/* A share is only known when every row of `blind` has been counted. Functions that cannot be probed at all
 * have rows that begin at 0, and are not among those that the budget knows. */
static const char questions[] =
    "SELECT (SELECT CAST(value AS INTEGER) FROM tags WHERE run_id = ?1 AND key = 'budget: functions'),"
    " count(DISTINCT function_id), min(nullif(from_ns, 0)),"
    " (SELECT sum(calls) FROM function_calls WHERE run_id = ?1),"
    " CASE WHEN count(*) = count(calls_missed) THEN coalesce(sum(calls_missed), 0) END,"
    " count(DISTINCT CASE WHEN from_ns = 0 THEN function_id END),"
    " EXISTS (SELECT 1 FROM losses WHERE run_id = ?1 AND cause <> 'unfinished') FROM blind"
    " WHERE run_id = ?1";

int completeness_read(struct tracestore *store, int64_t run_id, struct completeness *ret_completeness,
                      struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    struct completeness answer = {.run_id = run_id, .functions = -1, .missed = -1};
    int r = cli_prepare(store, &row, err, questions, 1, run_id);

    if (r == 0)
        r = cli_step(row, "IiNNNii", err);
    if (r < 0)
        return r;
    if (sqlite3_column_type(row, 0) != SQLITE_NULL)
        answer.functions = sqlite3_column_int64(row, 0) + sqlite3_column_int64(row, 5);
    answer.blind = sqlite3_column_int64(row, 1);
    answer.since_ns = sqlite3_column_int64(row, 5) ? 0 : (uint64_t)sqlite3_column_int64(row, 2);
    answer.calls = sqlite3_column_int64(row, 3);
    if (sqlite3_column_type(row, 4) != SQLITE_NULL)
        answer.missed = sqlite3_column_int64(row, 4);
    answer.lost = sqlite3_column_int(row, 6);
    *ret_completeness = answer;
    return 0;
}

/* Of the calls, how many were recorded: 100 only when all were. Negative: unknown. */
static double recorded_percent(const struct completeness *completeness)
{
    double percent;

    if (completeness->missed < 0 || completeness->lost)
        return -1;
    if (!completeness->missed)
        return 100;
    percent = 100.0 * (double)completeness->calls / (double)(completeness->calls + completeness->missed);
    return percent < 99.99 ? percent : 99.99;
}

void completeness_text(const struct completeness *completeness, char *text, size_t size)
{
    char blind[32], functions[40] = "", time[64] = "the beginning", share[64];

    *text = '\0';
    if (!completeness->blind)
        return;
    text_count((uint64_t)completeness->blind, blind, sizeof(blind));
    if (completeness->functions >= 0) {
        memcpy(functions, " of ", sizeof(" of "));
        text_count((uint64_t)completeness->functions, functions + 4, sizeof(functions) - 4);
    }
    if (completeness->since_ns)
        cli_format_time(completeness->since_ns, 3, time, sizeof(time));
    if (recorded_percent(completeness) >= 0)
        snprintf(share, sizeof(share), "%.2f %% of all calls recorded", recorded_percent(completeness));
    else
        snprintf(share, sizeof(share), "%s",
                 completeness->missed < 0 ? "not all of their calls were counted" : "events were lost");
    snprintf(text, size, "%s%s function%s not recorded all the time, since %s; %s", blind, functions,
             text_plural((uint64_t)(*functions ? completeness->functions : completeness->blind)), time,
             share);
}

void completeness_print(const struct completeness *runs, size_t count)
{
    char text[256];

    for (size_t i = 0; i < count; i++) {
        completeness_text(&runs[i], text, sizeof(text));
        if (*text && count > 1)
            text_print(stdout, "gaps: run %" PRId64 ": %s\n", runs[i].run_id, text);
        else if (*text)
            text_print(stdout, "gaps: %s\n", text);
    }
}

static json_t *number_or_null(int64_t number)
{
    return number < 0 ? json_null() : json_integer((json_int_t)number);
}

static json_t *item_json(const struct completeness *run)
{
    const double percent = recorded_percent(run);
    char text[256];

    completeness_text(run, text, sizeof(text));
    return json_pack("{s:I, s:o, s:o, s:I, s:o, s:I, s:o, s:o, s:o}", "run", (json_int_t)run->run_id,
                     "functions", number_or_null(run->functions), "complete",
                     number_or_null(run->functions < 0 ? -1 : run->functions - run->blind), "blind",
                     (json_int_t)run->blind, "since", cli_json_time(run->since_ns), "calls",
                     (json_int_t)run->calls, "missed", number_or_null(run->missed), "percent",
                     percent < 0 ? json_null() : json_real(percent), "text", cli_json_text(text));
}

json_t *completeness_json(const struct completeness *runs, size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, item_json(&runs[i]));
    return array;
}
