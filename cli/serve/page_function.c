/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The page "/runs/N/function": one function's calls and times, who calls it, and what it calls. */
#include <errno.h>
#include <string.h>

#include "analyzer/report/html.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "cli/common/output.h"
#include "cli/serve/document.h"
#include "cli/serve/page.h"
#include "cli/serve/print.h"

enum { ROWS_MAX = 300 };

/* Each caller, or each callee, with its calls. */
static const char callers_sql[] =
    "SELECT caller, sum(calls) FROM call_graph WHERE run_id = ?1 AND callee = ?2 GROUP BY caller ORDER BY 2 DESC, 1";
static const char callees_sql[] =
    "SELECT callee, sum(calls) FROM call_graph WHERE run_id = ?1 AND caller = ?2 GROUP BY callee ORDER BY 2 DESC, 1";

static void put_link(const struct print *print, const char *name)
{
    FILE *out = print->out;

    if (!*name) {
        fputs("nothing that was recorded", out);
        return;
    }
    page_function_link(out, print->runs[0], name);
}

static int put_table(const struct print *print, const char *caption, const char *sql, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    FILE *out = print->out;
    size_t count = 0;
    int r = cli_prepare(print->store, &row, err, sql, 1, print->route->runs[0]);

    if (r == 0 && db_bind(row, "it", print->route->runs[0], print->route->text) != SQLITE_OK)
        return error_no_memory(err);
    fprintf(out,
            "<div class=\"table\" tabindex=\"0\"><table><caption>%s</caption><thead><tr><th>Function</th><th "
            "class=\"right\">Calls</th></tr></thead>\n<tbody>\n",
            caption);
    while (r == 0 && (r = cli_step(row, "Ti", err)) == 0 && count++ < ROWS_MAX) {
        fputs("<tr><th scope=\"row\">", out);
        put_link(print, cli_text(row, 0));
        fputs("</th>", out);
        page_count_cell(out, (uint64_t)sqlite3_column_int64(row, 1));
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
    if (r == 0)
        html_paragraph(out, "note", "The first %d are shown.", ROWS_MAX);
    else if (!count)
        html_paragraph(out, "note", "None.");
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
    html_section_begin(out, "callers", "Callers");
    r = put_table(print, "Functions that called it", callers_sql, err);
    html_section_end(out);
    html_section_begin(out, "callees", "Callees");
    if (r == 0)
        r = put_table(print, "Functions that it called", callees_sql, err);
    html_section_end(out);
    page_end(out);
    return r;
}
