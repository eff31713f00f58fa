/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The page of a run. */
#include <inttypes.h>
#include <string.h>

#include "analyzer/report/html.h"
#include "base/error.h"
#include "cli/common/output.h"
#include "cli/report/report_goroutines.h"
#include "cli/serve/document.h"
#include "cli/serve/page.h"
#include "cli/serve/page_functions.h"
#include "cli/serve/page_threads.h"
#include "cli/serve/print.h"

/* ------------------------------------------------------------------------------------------ in a sentence */

static void put_end(FILE *out, const json_t *run)
{
    int64_t status = page_number(run, "exit_status", -1);

    if (json_is_null(json_object_get(run, "ended")))
        fputs(" It has not ended: it is being recorded, or its recorder died.", out);
    else if (status > 128)
        fprintf(out, " It was ended by signal %d.", (int)(status - 128));
    else if (status >= 0)
        fprintf(out, " It ended with status %d.", (int)status);
}

static void put_verdict(FILE *out, const json_t *run)
{
    char calls[32], threads[32], lost[32];
    int64_t missing = page_number(run, "lost", 0);
    size_t count = json_array_size(json_object_get(run, "threads"));

    fprintf(out, "<p class=\"summary\"><strong>%s call%s on %s thread%s.</strong>",
            html_count((uint64_t)page_number(run, "calls", 0), calls),
            page_number(run, "calls", 0) == 1 ? "" : "s", html_count(count, threads), count == 1 ? "" : "s");
    if (json_is_true(json_object_get(run, "complete")))
        fputs(" Nothing that was recorded is missing.", out);
    else if (missing)
        fprintf(out, " <strong>Incomplete: %s events are known to be missing.</strong>",
                html_count((uint64_t)missing, lost));
    else
        fputs(" <strong>Incomplete: an unknown part is missing.</strong>", out);
    put_end(out, run);
    fputs("</p>\n", out);
}

static void put_facts(FILE *out, const json_t *run)
{
    html_paragraph(out, "subtitle", "%s", page_member(run, "command"));
    html_paragraph(out, "note", "On %s, from %s to %s.", page_member(run, "host"),
                   page_member(run, "started"),
                   *page_member(run, "ended") ? page_member(run, "ended") : "now");
}

static int put_links(const struct print *print, struct error *err)
{
    FILE *out = print->out;
    const char *run = print->runs[0];
    int goroutines =
        report_has_goroutines(&(struct report_goroutines){print->store, print->route->runs[0]}, err);

    if (goroutines < 0)
        return goroutines;
    fputs(
        "<nav aria-label=\"About this run\"><ol><li><a href=\"#functions\">Functions</a></li><li><a "
        "href=\"#flame\">Flame graph</a></li><li><a href=\"#threads\">Threads</a></li><li><a "
        "href=\"#missing\">Not recorded</a></li>",
        out);
    fprintf(out, "<li><a href=\"/runs/%s/timeline\">Time line</a></li>", run);
    fprintf(out, "<li><a href=\"/runs/%s/loops\">Threads and their loops</a></li>", run);
    if (goroutines)
        fprintf(out, "<li><a href=\"/runs/%s/go\">Goroutines</a></li>", run);
    fprintf(out,
            "<li><a href=\"/runs/%s/report\">Report</a></li><li><a href=\"/api/v1/runs/%s/top\">JSON</a></li>"
            "</ol></nav>\n",
            run, run);
    return 0;
}

/* ------------------------------------------------------------------------------------------ what is missing */

static void put_losses(FILE *out, const json_t *run)
{
    const json_t *loss;
    size_t i;

    json_array_foreach(json_object_get(run, "losses"), i, loss)
    {
        char count[32];
        int64_t missing = page_number(loss, "count", -1);

        html_list_item(out, "%s: %s events, thread %s", page_member(loss, "cause"),
                       missing > 0 ? html_count((uint64_t)missing, count) : "an unknown number of",
                       *page_member(loss, "thread") ? page_member(loss, "thread") : "unknown");
    }
}

static void put_missing(FILE *out, const json_t *run)
{
    const json_t *losses = json_object_get(run, "losses"), *muted = json_object_get(run, "muted");
    const char *text = page_member(json_array_get(json_object_get(run, "completeness"), 0), "text");
    const json_t *function;
    size_t i;

    html_section_begin(out, "missing", "What was not recorded");
    if (*text)
        html_paragraph(out, NULL, "%s", text);
    if (json_array_size(losses) || json_array_size(muted)) {
        html_list_begin(out);
        put_losses(out, run);
        json_array_foreach(muted, i, function) html_list_item(
            out, "not all calls of %s",
            json_is_string(function) ? json_string_value(function) : page_member(function, "name"));
        html_list_end(out);
    } else if (!*text) {
        html_paragraph(out, NULL, "Nothing is known to be missing.");
    }
    html_section_end(out);
}

/* ------------------------------------------------------------------------------------------ the page */

int print_run(const struct print *print, struct error *err)
{
    const char *const arguments[] = {print->runs[0], NULL};
    AUTO_JSON json_t *run = document_read(&cmd_show, arguments);
    AUTO_JSON json_t *top = page_functions_read(print->runs[0]);
    FILE *out = print->out;
    char flame[64];
    int r;

    if (!run || !top)
        return error_say(err, -EIO, "Run %s cannot be read (tracectl verify).", print->runs[0]);
    page_begin(out, "Run %s: %s", print->runs[0], page_member(run, "name"));
    put_facts(out, run);
    put_verdict(out, run);
    r = put_links(print, err);
    html_section_begin(out, "functions", "Functions");
    if (r >= 0)
        r = page_functions_put(print, top, err);
    html_section_end(out);
    html_section_begin(out, "flame", "Flame graph");
    snprintf(flame, sizeof(flame), "/runs/%s/flame.svg", print->runs[0]);
    page_frame(out, "Flame graph", flame);
    html_section_end(out);
    html_section_begin(out, "threads", "Threads");
    if (r >= 0)
        r = page_threads_put(out, run, err);
    html_section_end(out);
    put_missing(out, run);
    page_end(out);
    return r;
}
