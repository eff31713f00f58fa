/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The page "/sql": a statement that only reads, and its rows. */
#include <string.h>

#include "analyzer/report/html.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "cli/common/output.h"
#include "cli/serve/page.h"
#include "cli/serve/print.h"
#include "cli/sql/sql_names.h"
#include "cli/sql/sql_output.h"

enum { ROWS_MAX = 1000, SQL_SECONDS = 20 };

/* The words that the script completes. Without them the page works, too. */
static void put_words(const struct print *print)
{
    struct sql_names *names = NULL;
    const char *const *words;
    size_t count;

    if (sql_names_new(tracestore_db(print->store), &names, NULL))
        return;
    count = sql_names_match(names, "", 0, &words);
    fputs("<datalist id=\"words\">", print->out);
    for (size_t i = 0; i < count; i++) {
        fputs("<option value=\"", print->out);
        page_text(print->out, words[i]);
        fputs("\">", print->out);
    }
    fputs("</datalist>\n", print->out);
    sql_names_free(names);
}

static void put_form(const struct print *print)
{
    FILE *out = print->out;
    const char *text = print->route->text;

    fputs(
        "<form action=\"/sql\"><label for=\"q\">A statement (SELECT; tables are described in docs/sql.md)</label>\n"
        "<textarea id=\"q\" name=\"q\" rows=\"6\" spellcheck=\"false\" autofocus "
        "aria-describedby=\"keys\">\n",
        out);
    page_text(out, text ? text
                        : "SELECT name, sum(calls) AS calls FROM call_counts GROUP BY name ORDER BY calls "
                          "DESC LIMIT 20");
    fprintf(
        out,
        "</textarea>\n<ul id=\"completions\" role=\"listbox\" aria-label=\"Completions\" hidden></ul>\n<p><button>Run (Ctrl-Enter)</button> <button formaction=\"/sql.csv\">All rows as "
        "CSV</button></p></form>\n<p class=\"note\">At most %d rows are shown, and a statement is stopped after "
        "%d seconds. <span id=\"keys\">Names of tables and columns are completed: arrow keys and Enter choose, Escape "
        "closes the list.</span></p>\n",
        ROWS_MAX, SQL_SECONDS);
}

static void put_cell(FILE *out, sqlite3_stmt *row, int column)
{
    switch (sqlite3_column_type(row, column)) {
    case SQLITE_NULL:
        fputs("<td class=\"note\">NULL</td>", out);
        return;
    case SQLITE_BLOB:
        fprintf(out, "<td class=\"note\">%d bytes</td>", sqlite3_column_bytes(row, column));
        return;
    case SQLITE_INTEGER:
    case SQLITE_FLOAT:
        fputs("<td class=\"right\">", out);
        break;
    default:
        fputs("<td>", out);
        break;
    }
    page_text(out, cli_text(row, column));
    fputs("</td>", out);
}

static void put_heads(FILE *out, sqlite3_stmt *statement)
{
    fputs("<div class=\"table\" tabindex=\"0\"><table><thead><tr>", out);
    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        fputs("<th>", out);
        page_text(out, sqlite3_column_name(statement, i));
        fputs("</th>", out);
    }
    fputs("</tr></thead>\n<tbody>\n", out);
}

/* Returns what the last step said. */
static int put_rows(FILE *out, sqlite3_stmt *statement, unsigned *ret_count)
{
    int r;

    put_heads(out, statement);
    for (*ret_count = 0; (r = sqlite3_step(statement)) == SQLITE_ROW && *ret_count < ROWS_MAX; ++*ret_count) {
        fputs("<tr>", out);
        for (int i = 0; i < sqlite3_column_count(statement); i++)
            put_cell(out, statement, i);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
    return r;
}

static int put_answer(const struct print *print, struct statement_guard *guard, struct error *err)
{
    AUTO_STORE struct tracestore *store = NULL;
    AUTO_STATEMENT *statement = NULL;
    const char *rest;
    unsigned count;
    int r = sql_open(&store, guard, err);

    if (r == 0)
        r = sql_prepare(tracestore_db(store), guard, print->route->text, &statement, &rest, err);
    if (r == 0 && (!statement || rest[strspn(rest, " \t\r\n;")]))
        r = error_say(err, -EINVAL, "query: one statement, please");
    if (r < 0)
        return r;
    r = put_rows(print->out, statement, &count);
    if (r == SQLITE_ROW)
        html_paragraph(print->out, "note", "There are more than %u rows.", count);
    else if (r == SQLITE_DONE)
        html_paragraph(print->out, "note", "%u row%s.", count, count == 1 ? "" : "s");
    else
        return sql_fail(tracestore_db(store), guard, err);
    return 0;
}

static void release_guard(struct statement_guard *guard)
{
    statement_guard_release(guard);
}

/* A mistake in the statement is shown beside it. */
int print_sql(const struct print *print, struct error *err)
{
    CLEANUP(release_guard) struct statement_guard guard = {.limit_ns = SQL_SECONDS * UINT64_C(1000000000)};
    int r = 0;

    page_begin(print->out, "SQL");
    put_form(print);
    put_words(print);
    if (print->route->text)
        r = put_answer(print, &guard, err);
    if (r < 0) {
        fputs("<p class=\"summary\" role=\"alert\">", print->out);
        page_text(print->out, err->message);
        fputs("</p>\n", print->out);
    }
    page_end(print->out);
    return 0;
}
