/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The page that compares two runs. */
#include <stdlib.h>
#include <string.h>

#include "analyzer/report/html.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "cli/common/output.h"
#include "cli/serve/document.h"
#include "cli/serve/page.h"
#include "cli/serve/page_functions.h"
#include "cli/serve/print.h"

/* What diff says in its first lines. */
static int put_verdict(FILE *out, const json_t *difference, struct error *err)
{
    AUTO_FREE char *text = strdup(page_member(json_object_get(difference, "summary"), "text"));
    char *rest = text, *line;

    if (!text)
        return error_no_memory(err);
    fputs("<div class=\"summary\">\n", out);
    while ((line = strsep(&rest, "\n")))
        if (*line)
            html_paragraph(out, *line == ' ' ? "indent" : NULL, "%s", line);
    fputs("</div>\n", out);
    return 0;
}

static int put_side_by_side(const struct print *print, struct error *err)
{
    const char *const arguments[] = {print->runs[0], print->runs[1], NULL};
    CLEANUP(document_release) struct document document;

    if (document_run(&cmd_diff, false, arguments, &document) < 0)
        return error_no_memory(err);
    html_section_begin(print->out, "sides", "Side by side");
    html_paragraph(
        print->out, "note",
        "The loops of the threads that differ most (diffNLR): the lines marked |, < and > differ, those "
        "marked ? cannot be compared.");
    fputs("<details open><summary>diffNLR</summary><pre tabindex=\"0\">", print->out);
    page_text(print->out, document_is_good(&document) ? document.output : document.errors);
    fputs("</pre></details>\n", print->out);
    html_section_end(print->out);
    return 0;
}

static void put_links(const struct print *print)
{
    const char *before = print->runs[0], *after = print->runs[1];

    fprintf(
        print->out,
        "<nav aria-label=\"About these runs\"><ol><li><a href=\"/runs/%s\">Run %s</a></li><li><a "
        "href=\"/runs/%s\">Run %s</a></li><li><a href=\"/compare/%s/%s\">The other way round</a></li><li><a "
        "href=\"/compare/%s/%s/report\">Report: ranking, similarity, lattices</a></li><li><a "
        "href=\"/api/v1/compare/%s/%s\">JSON</a></li></ol></nav>\n",
        before, before, after, after, after, before, before, after, before, after);
}

int print_compare(const struct print *print, struct error *err)
{
    const char *const arguments[] = {print->runs[0], print->runs[1], NULL};
    AUTO_JSON json_t *difference = document_read(&cmd_diff, arguments);
    AUTO_JSON json_t *before = page_functions_read(print->runs[0]),
                     *after = page_functions_read(print->runs[1]);
    FILE *out = print->out;
    char flame[80];
    int r;

    if (!difference || !before || !after)
        return error_say(err, -EIO, "Runs %s and %s cannot be compared (tracectl verify).", print->runs[0],
                         print->runs[1]);
    page_begin(out, "Run %s to run %s: %s to %s", print->runs[0], print->runs[1], page_member(before, "name"),
               page_member(after, "name"));
    r = put_verdict(out, difference, err);
    put_links(print);
    html_section_begin(out, "functions", "Functions");
    if (r >= 0)
        r = page_functions_compare(print, before, after, err);
    html_section_end(out);
    html_section_begin(out, "flame", "Flame graph of the difference");
    snprintf(flame, sizeof(flame), "/compare/%s/%s/flame.svg", print->runs[0], print->runs[1]);
    page_frame(out, "Flame graph of the difference", flame);
    html_section_end(out);
    if (r >= 0)
        r = put_side_by_side(print, err);
    page_end(out);
    return r;
}
