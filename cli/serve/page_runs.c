/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The pages "/" and "/live", and /metrics: what is in the store. */
#include <inttypes.h>
#include <string.h>

#include "analyzer/report/html.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "cli/common/output.h"
#include "cli/serve/document.h"
#include "cli/serve/page.h"
#include "cli/serve/print.h"
#include "store/db/store.h"

enum { RUNS_PER_PAGE = 100, LIVE_MAX = 20, LIVE_FUNCTIONS = 10 };

/* ?1: a part of the name, the command, the host or a tag "KEY=VALUE"; ?2, ?3: rows and rows to skip. */
static const char runs_sql[] =
    "SELECT r.run_id, r.name, r.command, r.host, r.started_ns, r.ended_ns, r.exit_status, r.recorder FROM runs r "
    "WHERE ?1 = '' OR instr(lower(r.name), lower(?1)) OR instr(lower(r.command), lower(?1)) OR "
    "instr(lower(r.host), lower(?1)) OR EXISTS (SELECT 1 FROM tags t WHERE t.run_id = r.run_id AND "
    "instr(lower(t.key || '=' || t.value), lower(?1))) ORDER BY r.run_id DESC LIMIT ?2 OFFSET ?3";
static const char live_sql[] =
    "SELECT run_id, name, command, host, started_ns, ended_ns, exit_status, recorder FROM runs WHERE ended_ns IS "
    "NULL ORDER BY run_id DESC LIMIT 200";
static const char types[] = "itttnNIt";

enum column { RUN_ID, NAME, COMMAND, HOST, STARTED, ENDED, EXIT, RECORDER };

/* ------------------------------------------------------------------------------------------ rows */

static const char *state_of(sqlite3_stmt *row, const struct tracestore_totals *totals)
{
    if (sqlite3_column_type(row, ENDED) == SQLITE_NULL)
        return recorder_alive(cli_text(row, RECORDER)) ? "recording" : "not ended";
    return totals->complete ? "complete" : "incomplete";
}

static void put_table_head(FILE *out, const char *caption)
{
    fprintf(
        out,
        "<div class=\"table\" tabindex=\"0\"><table><caption>%s</caption><thead><tr><th>Pick</th><th "
        "class=\"right\">Run</th><th>Name</th><th>State</th><th>Started</th><th class=\"right\">Threads</th><th "
        "class=\"right\">Calls</th><th class=\"right\">Lost</th><th>Host</th><th>Command</th></tr></thead>\n"
        "<tbody>\n",
        caption);
}

static int put_row(const struct print *print, struct tracestore_totals_reader *reader, sqlite3_stmt *row,
                   struct error *err)
{
    FILE *out = print->out;
    long long run = sqlite3_column_int64(row, RUN_ID);
    struct tracestore_totals totals;
    char started[40];
    int r = tracestore_totals_read(reader, run, &totals, err);

    if (r < 0)
        return r;
    cli_format_time((uint64_t)sqlite3_column_int64(row, STARTED), 0, started, sizeof(started));
    fprintf(
        out,
        "<tr><td><input type=\"checkbox\" name=\"run\" value=\"%lld\" aria-label=\"Pick run %lld\"></td><td "
        "class=\"right\">%lld</td><td><a href=\"/runs/%lld\">",
        run, run, run, run);
    page_text(out, *cli_text(row, NAME) ? cli_text(row, NAME) : "(no name)");
    fprintf(out, "</a></td><td>%s</td><td>%s</td>", state_of(row, &totals), started);
    page_count_cell(out, totals.threads);
    page_count_cell(out, totals.calls);
    page_count_cell(out, totals.lost);
    fputs("<td>", out);
    page_text(out, cli_text(row, HOST));
    fputs("</td><td>", out);
    page_text(out, cli_text(row, COMMAND));
    fputs("</td></tr>\n", out);
    return 0;
}

/* All rows of the statement, up to `most`; *ret_count of them, one more when there are more. */
static int put_rows(const struct print *print, sqlite3_stmt *statement, unsigned most, unsigned *ret_count,
                    struct error *err)
{
    AUTO_TOTALS_READER *reader = NULL;
    unsigned count = 0;
    int r = tracestore_totals_open(print->store, TRACESTORE_CALLS, &reader, err);

    if (r < 0)
        return r;
    while ((r = cli_step(statement, types, err)) == 0) {
        if (count++ == most)
            break;
        r = put_row(print, reader, statement, err);
        if (r < 0)
            return r;
    }
    *ret_count = count;
    return r < 0 ? r : 0;
}

/* ------------------------------------------------------------------------------------------ runs */

static void put_page_link(const struct print *print, unsigned page, const char *words)
{
    const char *text = print->route->text ? print->route->text : "";

    fprintf(print->out, "<a href=\"/?page=%u&amp;q=", page);
    for (; *text; text++)
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._", *text))
            fputc(*text, print->out);
        else
            fprintf(print->out, "%%%02x", (unsigned char)*text);
    fprintf(print->out, "\">%s</a> ", words);
}

static void put_search(const struct print *print)
{
    fputs(
        "<form action=\"/\" class=\"bar-of-fields\"><label>Name, tag, command or host <input type=\"search\" "
        "name=\"q\" value=\"",
        print->out);
    page_text(print->out, print->route->text ? print->route->text : "");
    fputs("\"></label> <button>Search</button></form>\n", print->out);
}

int print_runs(const struct print *print, struct error *err)
{
    AUTO_STATEMENT *live = NULL, *statement = NULL;
    const struct route *route = print->route;
    FILE *out = print->out;
    unsigned count = 0;
    int r = cli_prepare(print->store, &live, err, live_sql, 0);

    if (r == 0)
        r = cli_prepare(print->store, &statement, err, runs_sql, 3, (int64_t)0, (int64_t)RUNS_PER_PAGE + 1,
                        (int64_t)route->page * RUNS_PER_PAGE);
    if (r < 0)
        return r;
    sqlite3_bind_text(statement, 1, route->text ? route->text : "", -1, SQLITE_STATIC);
    page_begin(out, "Runs");
    put_search(print);
    fputs("<form action=\"/compare\">\n<div id=\"live\" data-events=\"/events\">\n", out);
    if (!route->page && !route->text) {
        put_table_head(out, "Not ended: being recorded, or their recorder died");
        r = put_rows(print, live, LIVE_MAX, &count, err);
        fputs("</tbody></table></div>\n", out);
    }
    fputs("</div>\n", out);
    put_table_head(out, "Newest first");
    if (r == 0)
        r = put_rows(print, statement, RUNS_PER_PAGE, &count, err);
    fputs("</tbody></table></div>\n<p><button>Compare the two picked runs</button></p></form>\n<p>", out);
    if (route->page)
        put_page_link(print, route->page - 1, "Newer");
    if (count > RUNS_PER_PAGE)
        put_page_link(print, route->page + 1, "Older");
    fputs("</p>\n", out);
    if (!count)
        html_paragraph(out, "note", "No run matches.");
    page_end(out);
    return r;
}

/* ------------------------------------------------------------------------------------------ live */

static int put_live_run(const struct print *print, sqlite3_stmt *row, struct error *err)
{
    char run[24], limit[8], calls[32];
    const char *const arguments[] = {"--limit", limit, run, NULL};
    bool alive = recorder_alive(cli_text(row, RECORDER));
    AUTO_JSON json_t *top = NULL;
    double seconds = (double)(clock_ns(CLOCK_REALTIME) - (uint64_t)sqlite3_column_int64(row, STARTED)) / 1e9;
    const json_t *function;
    size_t i;

    snprintf(run, sizeof(run), "%lld", (long long)sqlite3_column_int64(row, RUN_ID));
    snprintf(limit, sizeof(limit), "%d", LIVE_FUNCTIONS);
    top = document_read(&cmd_top, arguments);
    if (!top)
        return error_say(err, -EIO, "cannot read run %s", run);
    fprintf(print->out, "<section><h2><a href=\"/runs/%s\">Run %s: ", run, run);
    page_text(print->out, cli_text(row, NAME));
    fputs("</a></h2>\n", print->out);
    html_paragraph(print->out, NULL, "%s, for %.0f s: %s calls stored so far.",
                   alive ? "Being recorded" : "Its recorder died", seconds,
                   html_count((uint64_t)page_number(top, "calls", 0), calls));
    fputs(
        "<div class=\"table\" tabindex=\"0\"><table><caption>Most called</caption><thead><tr><th "
        "class=\"right\">Calls</th><th>Function</th></tr></thead><tbody>\n",
        print->out);
    json_array_foreach(json_object_get(top, "functions"), i, function)
    {
        fputs("<tr>", print->out);
        page_count_cell(print->out, (uint64_t)page_number(function, "calls", 0));
        fputs("<td>", print->out);
        page_text(print->out, page_member(function, "name"));
        fputs("</td></tr>\n", print->out);
    }
    fputs("</tbody></table></div></section>\n", print->out);
    return 0;
}

int print_live(const struct print *print, struct error *err)
{
    AUTO_STATEMENT *statement = NULL;
    unsigned count = 0;
    int r = cli_prepare(print->store, &statement, err, live_sql, 0);

    if (r < 0)
        return r;
    page_begin(print->out, "Live");
    html_paragraph(print->out, "note",
                   "Runs of this store that have not ended. The page follows the store while it is open.");
    fputs("<div id=\"live\" data-events=\"/events\">\n", print->out);
    while (count < LIVE_MAX && (r = cli_step(statement, types, err)) == 0) {
        r = put_live_run(print, statement, err);
        if (r < 0)
            return r;
        count++;
    }
    if (!count)
        html_paragraph(print->out, NULL, "Nothing is being recorded into this store.");
    fputs("</div>\n", print->out);
    page_end(print->out);
    return r < 0 ? r : 0;
}

/* ------------------------------------------------------------------------------------------ metrics */

struct metric {
    const char *name, *help, *sql;
};

/* Sums of the catalog: no segment is read. */
static const struct metric metrics[] = {
    {"tracectl_store_runs", "Runs in the store.", "SELECT count(*) FROM runs"},
    {"tracectl_store_runs_not_ended", "Runs that have not ended.",
     "SELECT count(*) FROM runs WHERE ended_ns IS NULL"},
    {"tracectl_store_threads", "Threads in the store.", "SELECT count(*) FROM threads"},
    {"tracectl_store_lost_events", "Events known to be missing, of all runs.",
     "SELECT coalesce(sum(count), 0) FROM losses"},
    {"tracectl_store_bytes", "Size of the store.",
     "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"},
    {"tracectl_store_last_run_started_seconds", "When the newest run began.",
     "SELECT coalesce(max(started_ns), 0) / 1000000000 FROM runs"},
};

int print_metrics(const struct print *print, struct error *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(metrics); i++) {
        AUTO_STATEMENT *statement = NULL;
        int r = cli_prepare(print->store, &statement, err, metrics[i].sql, 0);

        if (r == 0)
            r = cli_step(statement, "n", err);
        if (r < 0)
            return r;
        metrics_put(print->out, metrics[i].name, "gauge", metrics[i].help,
                    (uint64_t)sqlite3_column_int64(statement, 0));
    }
    return 0;
}
