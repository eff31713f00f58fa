/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What `tracectl top` shows of what runs: the same words on the screen, as text and in JSON. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "cli/common/table.h"
#include "cli/live/top_live.h"

const char *const top_titles[TOP_COLUMNS] = {">CALLS/S", ">SHARE", "PROBE", "IMAGE", "FUNCTION"};

/* Calls a second of the functions that are counted now. */
double top_counted(const struct top_view *view)
{
    double sum = 0;

    for (size_t i = 0; i < view->count; i++)
        if (view->functions[i].state != FUNCTION_EXCLUDED)
            sum += view->functions[i].calls_per_second;
    return sum;
}

static void time_of_day(char *text, size_t size)
{
    time_t now = time(NULL);
    struct tm local;

    localtime_r(&now, &local);
    strftime(text, size, "%H:%M:%S", &local);
}

void top_head(const struct top_view *view, char lines[TOP_HEAD_LINES][TOP_CELL])
{
    const struct budget_totals *totals = &view->totals;
    char calls[32], seen[32], functions[32], now[16];
    int length;

    time_of_day(now, sizeof(now));
    text_count((uint64_t)(view->counted + 0.5), calls, sizeof(calls));
    snprintf(lines[0], TOP_CELL, "tracectl top - %s %s: %s calls/s counted", now, view->title, calls);
    if (!view->has_totals) {
        lines[1][0] = '\0';
        return;
    }
    text_count(totals->functions - totals->out, seen, sizeof(seen));
    text_count(totals->functions, functions, sizeof(functions));
    length = snprintf(lines[1], TOP_CELL,
                      "budget %g %%, %.1f %% used, worst second %.1f %%; %s of %s functions counted",
                      100 * totals->share, 100 * view->used, 100 * totals->worst_second, seen, functions);
    if (totals->out && length > 0 && length < TOP_CELL)
        snprintf(lines[1] + length, TOP_CELL - (size_t)length,
                 ", %zu not counted: called too often for the budget", totals->out);
}

/* What is known of a function that is out is how often it was called when it was seen last. */
void top_cells(const struct top_view *view, const struct budget_function_status *function,
               char cells[TOP_COLUMNS][TOP_CELL])
{
    bool out = function->state == FUNCTION_EXCLUDED;
    double all = view->counted;
    char calls[32];

    text_count((uint64_t)(function->calls_per_second + 0.5), calls, sizeof(calls));
    snprintf(cells[0], TOP_CELL, "%s%s", out ? "~" : "", calls);
    if (out || !(all > 0))
        snprintf(cells[1], TOP_CELL, "?");
    else
        snprintf(cells[1], TOP_CELL, "%.1f%%", 100 * function->calls_per_second / all);
    snprintf(cells[2], TOP_CELL, "%s", record_state_name(function->state));
    snprintf(cells[3], TOP_CELL, "%s", path_file_name(function->image));
    snprintf(cells[4], TOP_CELL, "%s", function->name);
}

/* ------------------------------------------------------------------------------------ text and JSON */

static json_t *function_json(const struct top_view *view, const struct budget_function_status *function)
{
    bool out = function->state == FUNCTION_EXCLUDED;
    double all = view->counted;

    return json_pack("{s:o, s:o, s:s, s:f, s:o}", "name", cli_json_text(function->name), "image",
                     cli_json_text(function->image), "state", record_state_name(function->state),
                     "calls_per_second", function->calls_per_second, "percent",
                     out || !(all > 0) ? json_null() : json_real(100 * function->calls_per_second / all));
}

static json_t *totals_json(const struct top_view *view)
{
    const struct budget_totals *totals = &view->totals;

    if (!view->has_totals)
        return json_null();
    return json_pack("{s:f, s:f, s:f, s:I, s:I, s:I}", "percent", 100 * totals->share, "used_percent",
                     100 * view->used, "worst_second_percent", 100 * totals->worst_second, "functions",
                     (json_int_t)totals->functions, "limited", (json_int_t)totals->limited, "out",
                     (json_int_t)totals->out);
}

/* A document a line, so that a reader need not wait for the end. */
static int print_json(const struct top_view *view, unsigned long limit, struct error *err)
{
    AUTO_JSON json_t *functions = json_array(), *document = NULL;

    for (size_t i = 0; i < view->count && (!limit || i < limit); i++)
        json_array_append_new(functions, function_json(view, &view->functions[i]));
    document = json_pack("{s:o, s:f, s:o, s:O}", "title", cli_json_text(view->title), "calls_per_second",
                         view->counted, "budget", totals_json(view), "functions", functions);
    if (!document)
        return error_no_memory(err);
    if (json_dumpf(document, stdout, JSON_COMPACT) || putchar('\n') == EOF)
        return error_say(err, -EIO, "cannot write standard output");
    return 0;
}

static int print_text(const struct top_view *view, unsigned long limit, struct error *err)
{
    char lines[TOP_HEAD_LINES][TOP_CELL], cells[TOP_COLUMNS][TOP_CELL];
    const char *titles[TOP_COLUMNS];
    struct table *table;

    top_head(view, lines);
    for (size_t i = 0; i < TOP_HEAD_LINES; i++)
        if (lines[i][0])
            text_print(stdout, "%s\n", lines[i]);
    memcpy(titles, top_titles, sizeof(titles));
    titles[TOP_COLUMNS - 2] = view->where;
    table = table_new(stdout, titles, TOP_COLUMNS, cli_colour());
    for (size_t i = 0; table && i < view->count && (!limit || i < limit); i++) {
        top_cells(view, &view->functions[i], cells);
        for (size_t column = 0; column < TOP_COLUMNS; column++)
            table_cell(table, cells[column]);
    }
    if (!table || table_free(table) < 0)
        return error_no_memory(err);
    putchar('\n');
    return 0;
}

int top_print(const struct top_view *view, unsigned long limit, struct error *err)
{
    int r = cli.json ? print_json(view, limit, err) : print_text(view, limit, err);

    if (!r && fflush(stdout))
        r = error_say(err, -EIO, "cannot write standard output");
    return r;
}
