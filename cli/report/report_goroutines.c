/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/report/report_goroutines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "analyzer/go/tree.h"
#include "analyzer/picture/go_timeline.h"
#include "analyzer/picture/markup.h"
#include "analyzer/report/html.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "cli/go/go_verdict.h"

enum { MOST_NODES = 200, TEXT_SIZE = 256 };

int report_has_goroutines(const struct report_goroutines *report, struct error *err)
{
    struct go_program *programs = NULL;
    size_t count = 0;
    int r = go_programs(report->store, report->run_id, &programs, &count, err);

    go_programs_free(programs, count);
    return r < 0 ? r : count > 0;
}

/* The words of `go check`, as they are. */
static int write_verdict(FILE *out, const struct go_judged_run *judged, struct error *err)
{
    AUTO_FREE char *text = NULL;
    size_t size;
    FILE *words = open_memstream(&text, &size);

    if (!words)
        return error_no_memory(err);
    go_verdict_text(words, judged);
    if (fclose(words))
        return error_no_memory(err);
    fputs("<pre>", out);
    markup_escape(out, text);
    fputs("</pre>\n", out);
    return 0;
}

/* ------------------------------------------------------------------------------------------ the tree */

struct tree_page {
    FILE *out;
    const struct go_judged *judged;
    size_t nodes;
};

static int write_node(void *context, const struct go_node *node)
{
    struct tree_page *page = context;
    const struct go_goroutine *goroutine = node->goroutine;
    struct go_place begins = go_judged_place(page->judged, goroutine->function);
    struct go_place made = go_judged_place(page->judged, goroutine->created_at);
    struct go_place last = go_judged_place(page->judged, node->last_site);
    char text[TEXT_SIZE];

    if (page->nodes++ >= MOST_NODES)
        return 0;
    go_judged_label(page->judged, goroutine->goroutine, text, sizeof(text));
    fprintf(page->out, "%*s%s ", (int)(2 * node->depth), "", text);
    markup_escape(page->out, *begins.function ? begins.function : "?");
    go_place_text(&made, text, sizeof(text));
    fputs(", created at ", page->out);
    markup_escape(page->out, text);
    fprintf(page->out, ": %s", go_state_text(goroutine->state));
    if (node->has_last) {
        go_place_text(&last, text, sizeof(text));
        fprintf(page->out, "; last: %s at ", go_op_name(node->last_operation));
        markup_escape(page->out, text);
    }
    if (node->count > 1)
        fprintf(page->out, " (x %" PRIu64 ")", node->count);
    putc('\n', page->out);
    return 0;
}

static int write_tree(FILE *out, const struct go_judged *judged, const struct go_tree *tree)
{
    struct tree_page page = {out, judged, 0};
    int r;

    fputs("<pre>", out);
    r = go_tree_walk(tree, judged->replay, &(struct go_tree_options){0}, write_node, &page);
    fputs("</pre>\n", out);
    if (page.nodes > MOST_NODES)
        html_paragraph(out, "note", "Omitted: %zu of %zu lines. tracectl go tree prints all.",
                       page.nodes - MOST_NODES, page.nodes);
    return r;
}

/* ------------------------------------------------------------------------------------------ a program */

static int write_timeline(FILE *out, struct tracestore *store, const struct go_judged *judged,
                          struct error *err)
{
    static const struct go_timeline_options usual = {0};
    CLEANUP(go_timeline_release) struct go_timeline timeline = {0};
    struct go_place_source places = go_places_source(judged->places);
    AUTO_FREE char *svg = NULL;
    char title[TEXT_SIZE];
    int r = go_timeline_read(store, judged->program, places, judged->replay, &judged->verdict, &usual,
                             &timeline, err);

    if (r < 0)
        return r;
    snprintf(title, sizeof(title), "Timeline of the goroutines of process %s", judged->program->label);
    r = go_timeline_svg(&timeline, places, title, SVG_INLINE, &svg);
    if (r < 0)
        return error_set(err, r, NULL, "drawing the timeline of goroutines");
    html_figure(out, svg, "What the relevant goroutines did, in time order from top to bottom.");
    return 0;
}

static int write_program(FILE *out, struct tracestore *store, const struct go_program *program,
                         struct go_places *places, struct error *err)
{
    CLEANUP(go_judged_release) struct go_judged judged = {0};
    CLEANUP(go_tree_release) struct go_tree tree = {0};
    const struct go_judge_listener listener = {go_tree_action, &tree};
    int r = go_judge(store, program, places, &listener, &judged, err);

    if (r < 0)
        return r;
    html_subheading(out, "Creation tree of the goroutines of process %s", program->label);
    r = write_tree(out, &judged, &tree);
    if (r < 0)
        return error_set(err, r, NULL, "making the tree of goroutines");
    html_subheading(out, "Timeline");
    return write_timeline(out, store, &judged, err);
}

int report_write_goroutines(void *context, FILE *out, struct error *err)
{
    const struct report_goroutines *report = context;
    CLEANUP(go_judged_run_release) struct go_judged_run judged = {0};
    int r = go_judge_run(report->store, report->run_id, &judged, err);

    if (!r)
        r = write_verdict(out, &judged, err);
    for (size_t i = 0; !r && i < judged.count; i++)
        r = write_program(out, report->store, &judged.programs[i], judged.places, err);
    return r;
}
