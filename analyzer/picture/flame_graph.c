/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/picture/flame_graph.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/picture/flame_graph_js.h"
#include "analyzer/picture/flame_tree.h"
#include "analyzer/picture/markup.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/fnv.h"
#include "base/text.h"

#define WIDTH 1200.0
#define MARGIN 10.0
#define HEAD 60.0 /* title, buttons and the line about the frame under the pointer */
#define ROW 17.0
#define LEAST 0.1 /* pixels: narrower frames are not drawn */
#define CHARACTER 7.23
#define LABEL_LEAST 3 /* characters */

struct drawing {
    const struct flame_tree *tree;
    FILE *out;
    const char *title, *unit;
    bool compares;
    double scale;   /* pixels for one call or nanosecond */
    size_t deepest; /* row */
};

static uint64_t total_of(const struct flame_node *node)
{
    return node->total[FLAME_BASELINE] + node->total[FLAME_CANDIDATE];
}

static double width_of(const struct drawing *drawing, uint32_t at)
{
    return (double)total_of(&drawing->tree->nodes[at]) * drawing->scale;
}

static size_t deepest_of(const struct drawing *drawing, uint32_t at, size_t row)
{
    size_t deepest = row;

    for (uint32_t below = drawing->tree->nodes[at].first; below;
         below = drawing->tree->nodes[below].sibling) {
        size_t deep = width_of(drawing, below) < LEAST ? 0 : deepest_of(drawing, below, row + 1);

        deepest = deep > deepest ? deep : deepest;
    }
    return deepest;
}

/* ------------------------------------------------------------------------------------------ a frame */

/* Of one run: a warm colour that is the same wherever the name comes. */
static void put_colour_of_name(FILE *out, const char *name)
{
    uint64_t whole = fnv_add(FNV_START, name, strlen(name));
    uint32_t hash = (uint32_t)(whole ^ whole >> 32);

    fprintf(out, "rgb(%u,%u,%u)", 225 + hash % 30, 120 + (hash >> 8) % 100, 60 + (hash >> 16) % 40);
}

/* Of two runs: white where both did as much, orange where the candidate did more, blue where it did less. */
static void put_colour_of_change(FILE *out, const struct flame_node *node)
{
    double baseline = (double)node->total[FLAME_BASELINE], candidate = (double)node->total[FLAME_CANDIDATE];
    double change = (candidate - baseline) / (candidate + baseline);

    if (change >= 0)
        fprintf(out, "rgb(%.0f,%.0f,%.0f)", 245 - 15 * change, 245 - 105 * change, 245 - 205 * change);
    else
        fprintf(out, "rgb(%.0f,%.0f,%.0f)", 245 + 175 * change, 245 + 80 * change, 245 + 10 * change);
}

static void put_amount(const struct drawing *drawing, const struct flame_node *node)
{
    const struct flame_node *all = drawing->tree->nodes;
    char number[32], before[32];

    text_count(node->total[FLAME_CANDIDATE], number, sizeof(number));
    text_count(node->total[FLAME_BASELINE], before, sizeof(before));
    if (drawing->compares)
        fprintf(drawing->out, ": %s &#8594; %s %s", before, number, drawing->unit);
    else
        fprintf(drawing->out, ": %s %s, %.2f %%", number, drawing->unit,
                100.0 * (double)total_of(node) / (double)total_of(all));
}

/* As much of the name as there is room for. */
static void put_label(const struct drawing *drawing, const char *name, double x, double y, double width)
{
    size_t characters = width > 6 ? (size_t)((width - 6) / CHARACTER) : 0, length = text_width(name), at = 0;
    char part[256];

    fprintf(drawing->out, "<text x=\"%.2f\" y=\"%.1f\">", x + 3, y + ROW - 5);
    if (characters >= LABEL_LEAST && length <= characters) {
        markup_escape(drawing->out, name);
    } else if (characters >= LABEL_LEAST) {
        for (size_t i = 0; i + 2 < characters && name[at] && at + 8 < sizeof(part); i++)
            at += text_next(name + at);
        memcpy(part, name, at);
        memcpy(part + at, "..", 3);
        markup_escape(drawing->out, part);
    }
    fputs("</text>", drawing->out);
}

static void put_frame(const struct drawing *drawing, uint32_t node, double x, size_t row)
{
    const struct flame_node *frame = &drawing->tree->nodes[node];
    double width = width_of(drawing, node), y = HEAD + (double)(drawing->deepest - row) * ROW;
    FILE *out = drawing->out;

    fputs("<g class=\"frame\" tabindex=\"0\" data-name=\"", out);
    markup_escape(out, frame->name);
    fputs("\"><title>", out);
    markup_escape(out, frame->name);
    put_amount(drawing, frame);
    fprintf(out, "</title><rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.0f\" rx=\"1\" fill=\"", x, y,
            width, ROW - 1);
    if (drawing->compares)
        put_colour_of_change(out, frame);
    else
        put_colour_of_name(out, frame->name);
    fputs("\"/>", out);
    put_label(drawing, frame->name, x, y, width);
    fputs("</g>\n", out);
}

/* A frame and what it called. */
static void put_frames(const struct drawing *drawing, uint32_t node, double x, size_t row)
{
    put_frame(drawing, node, x, row);
    for (uint32_t below = drawing->tree->nodes[node].first; below;
         below = drawing->tree->nodes[below].sibling) {
        double width = width_of(drawing, below);

        if (width >= LEAST)
            put_frames(drawing, below, x, row + 1);
        x += width;
    }
}

/* ------------------------------------------------------------------------------------------ the document */

static void put_head(const struct drawing *drawing, double height)
{
    FILE *out = drawing->out;

    fprintf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
        "font-family=\"monospace\" font-size=\"12\">\n<title>",
        WIDTH, height, WIDTH, height);
    markup_escape(out, drawing->title);
    fputs(
        "</title>\n<style>rect.page{fill:#fff}text{fill:#111}svg{color-scheme:light dark}g.frame{cursor:pointer}g.frame:hover "
        "rect{stroke:#000}"
        "g.frame text{pointer-events:none}g.found rect{fill:#c0f!important}.button{cursor:pointer;"
        "text-decoration:underline}@media(prefers-color-scheme:dark){rect.page{fill:#1b1b1b}"
        "text.page{fill:#ddd}}</style>\n",
        out);
    fprintf(
        out,
        "<rect class=\"page\" width=\"%.0f\" height=\"%.0f\"/>\n<text class=\"page\" x=\"%.0f\" y=\"20\">",
        WIDTH, height, MARGIN);
    markup_escape(out, drawing->title);
    fprintf(out,
            "</text>\n<text class=\"page button\" id=\"reset\" x=\"%.0f\" y=\"20\">whole</text>\n"
            "<text class=\"page button\" id=\"search\" x=\"%.0f\" y=\"20\">search</text>\n"
            "<text class=\"page\" id=\"status\" x=\"%.0f\" y=\"42\">%s%s</text>\n",
            WIDTH - 120, WIDTH - 60, MARGIN,
            drawing->tree->shortened
                ? "Too many different paths: some end early, in a frame that calls more. "
                : "",
            drawing->compares ? "Width: calls in both runs. Orange: more in the second run; blue: fewer."
                              : "Click a frame to zoom.");
}

static void draw(struct drawing *drawing)
{
    uint64_t total = total_of(drawing->tree->nodes);

    drawing->scale = total ? (WIDTH - 2 * MARGIN) / (double)total : 0;
    drawing->deepest = deepest_of(drawing, 0, 0);
    put_head(drawing, HEAD + (double)(drawing->deepest + 1) * ROW + MARGIN);
    if (total)
        put_frames(drawing, 0, MARGIN, 0);
    else
        fprintf(drawing->out, "<text class=\"page\" x=\"%.0f\" y=\"%.0f\">nothing was recorded</text>\n",
                MARGIN, HEAD);
    fprintf(drawing->out, "<script><![CDATA[\n%s]]></script>\n</svg>\n", flame_graph_js);
}

/* Draws one run, or two where there is a baseline. */
static int draw_runs(const struct drawing *how, const struct flame_graph_run *baseline,
                     const struct flame_graph_run *candidate, const struct export_options *options,
                     struct export_totals *ret_totals, struct error *err)
{
    struct flame_tree tree;
    struct drawing drawing = *how;
    int r = flame_tree_init(&tree);

    if (r)
        error_no_memory(err);
    if (!r && baseline)
        r = flame_tree_add(&tree, FLAME_BASELINE, baseline->store, baseline->run, options, ret_totals, err);
    if (!r)
        r = flame_tree_add(&tree, FLAME_CANDIDATE, candidate->store, candidate->run, options, ret_totals,
                           err);
    if (!r) {
        flame_tree_finish(&tree);
        drawing.tree = &tree;
        drawing.compares = baseline;
        draw(&drawing);
    }
    flame_tree_release(&tree);
    return r;
}

static int write_graph(struct tracestore *store, const struct tracestore_run *run,
                       const struct export_options *options, FILE *out, struct export_totals *ret_totals,
                       struct error *err)
{
    const struct flame_graph_run drawn = {store, run};
    struct drawing drawing = {
        .out = out,
        .title = run->name,
        .unit = options->weight == EXPORT_TIME ? "ns" : "calls",
    };

    return draw_runs(&drawing, NULL, &drawn, options, ret_totals, err);
}

const struct export_format flame_graph_format = {
    .name = "flamegraph",
    .summary = "a flame graph, for browsers (SVG)",
    .write = write_graph,
};

int flame_graph_compare(const struct flame_graph_run *baseline, const struct flame_graph_run *candidate,
                        FILE *out, struct error *err)
{
    static const struct export_options options = {0};
    struct export_totals totals;
    AUTO_FREE char *title = NULL;
    struct drawing drawing = {.out = out, .unit = "calls"};

    if (asprintf(&title, "%s -> %s", baseline->run->name, candidate->run->name) < 0)
        return title = NULL, error_no_memory(err);
    drawing.title = title;
    return draw_runs(&drawing, baseline, candidate, &options, &totals, err);
}
