/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The page "/runs/N/function": one function's calls and times, who calls it, and what it calls. */
#include <errno.h>
#include <string.h>

#include "analyzer/report/html.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "cli/common/output.h"
#include "cli/serve/document.h"
#include "cli/serve/page.h"
#include "cli/serve/print.h"

enum { ROWS_MAX = 300 };

/* Callers before callees; the graph is worked out once for both. */
static const char neighbours_sql[] =
    "WITH edges AS MATERIALIZED (SELECT caller, callee, sum(calls) AS calls FROM call_graph "
    "WHERE run_id = ?1 AND (caller = ?2 OR callee = ?2) GROUP BY caller, callee) "
    "SELECT 0 AS side, caller AS name, calls FROM edges WHERE callee = ?2 "
    "UNION ALL SELECT 1, callee, calls FROM edges WHERE caller = ?2 ORDER BY side, calls DESC, name";

static const struct side {
    const char *id, *title, *caption;
} sides[] = {
    {"callers", "Callers", "Functions that called it"},
    {"callees", "Callees", "Functions that it called"},
};

static void put_link(const struct print *print, const char *name)
{
    FILE *out = print->out;

    if (!*name) {
        fputs("nothing that was recorded", out);
        return;
    }
    page_function_link(out, print->runs[0], name);
}

/* The rows of one side, from the one that has been read on. `*r`: as of cli_step(). */
static void put_side(const struct print *print, int side, sqlite3_stmt *row, int *r, struct error *err)
{
    FILE *out = print->out;
    size_t count = 0;

    html_section_begin(out, sides[side].id, sides[side].title);
    fprintf(out,
            "<div class=\"table\" tabindex=\"0\"><table><caption>%s</caption><thead><tr><th>Function</th><th "
            "class=\"right\">Calls</th></tr></thead>\n<tbody>\n",
            sides[side].caption);
    for (; *r == 0 && sqlite3_column_int(row, 0) == side; *r = cli_step(row, "iTi", err)) {
        if (count++ >= ROWS_MAX)
            continue;
        fputs("<tr><th scope=\"row\">", out);
        put_link(print, cli_text(row, 1));
        fputs("</th>", out);
        page_count_cell(out, (uint64_t)sqlite3_column_int64(row, 2));
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
    if (count > ROWS_MAX)
        html_paragraph(out, "note", "The first %d of %zu are shown.", ROWS_MAX, count);
    else if (!count)
        html_paragraph(out, "note", "None.");
    html_section_end(out);
}

static int put_neighbours(const struct print *print, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int r = cli_prepare(print->store, &row, err, neighbours_sql, 1, print->route->runs[0]);

    if (r == 0 && db_bind(row, "it", print->route->runs[0], print->route->text) != SQLITE_OK)
        return error_no_memory(err);
    if (r == 0)
        r = cli_step(row, "iTi", err);
    for (int side = 0; r >= 0 && side < (int)ARRAY_SIZE(sides); side++)
        put_side(print, side, row, &r, err);
    return r < 0 ? r : 0;
}

int print_function(const struct print *print, struct error *err)
{
    const char *name = print->route->text;
    const char *const arguments[] = {"--", print->runs[0], name, NULL};
    CLEANUP(document_release) struct document times = {0};
    FILE *out = print->out;
    int r;

    if (!name || !*name)
        return error_say(err, -EINVAL, "Name a function: /runs/%s/function?q=NAME.", print->runs[0]);
    if (document_run(&cmd_top, false, arguments, &times) < 0)
        return error_no_memory(err);
    if (!document_is_good(&times))
        return error_say(err, -EINVAL, "%s", times.errors);
    page_begin(out, "%s", name);
    fprintf(out, "<p><a href=\"/runs/%s\">Back to run %s</a></p>\n<pre tabindex=\"0\">", print->runs[0],
            print->runs[0]);
    page_text(out, times.output);
    fputs("</pre>\n", out);
    r = put_neighbours(print, err);
    page_end(out);
    return r;
}
