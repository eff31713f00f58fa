/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/picture/order_picture.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/order/order_branches.h"
#include "analyzer/order/order_words.h"

#define MARGIN 12.0
#define INDENT 28.0
#define PADDING 8.0
#define GAP 10.0
#define TEXT_WIDTH 620.0
#define LINE (SVG_FONT_SIZE * SVG_LINE_HEIGHT)

enum { RANGES_SHOWN = 6, DEEPEST_INDENT = 12 };

struct drawing {
    const struct order_picture *picture;
    const struct order_branch *branches;
    struct svg *svg;
    double *middles; /* of the first lines of the boxes that are drawn */
    double y, right;
};

struct look {
    struct svg_style box;
    const char *colour; /* of the mark's words */
};

static const struct look *look_of(const struct drawing *drawing, const struct order_branch *branch)
{
    static const struct look plain = {
        {.fill = "#f6f8fa", .stroke = "#8c959f", .stroke_width = 1, .radius = 4}, NULL};
    static const struct look behind = {
        {.fill = "#fff1e5", .stroke = "#b34700", .stroke_width = 2, .radius = 4}, "#b34700"};
    static const struct look ahead = {
        {.fill = "#e8f1fa", .stroke = "#1f4e79", .stroke_width = 2, .radius = 4}, "#1f4e79"};

    switch (order_branch_mark(drawing->picture->order, branch)) {
    case ORDER_NODE_APART:
    case ORDER_NODE_LEAST:
        return &behind;
    case ORDER_NODE_MOST:
        return &ahead;
    default:
        return &plain;
    }
}

static double left_of(const struct order_branch *branch)
{
    return MARGIN + INDENT * fmin(branch->depth, DEEPEST_INDENT);
}

/* "T0 1:[8] - behind all others" */
static int heading_of(const struct drawing *drawing, const struct order_branch *branch, char **ret_heading)
{
    const struct order_tree *order = drawing->picture->order;
    const char *mark = order_mark_words(order_branch_mark(order, branch));
    AUTO_FREE char *label = NULL;
    char rank[ORDER_RANK_SIZE];

    if (prefix_tree_label(order->tree, branch->first, RANGES_SHOWN, &label) < 0)
        return -ENOMEM;
    order_branch_rank(order, branch, rank);
    return asprintf(ret_heading, "%s%s%s%s%s", rank, *rank ? " " : "", label, *mark ? " - " : "", mark) < 0
               ? -ENOMEM
               : 0;
}

/* The line from the box above, around the corner. */
static void draw_edge(const struct drawing *drawing, size_t at)
{
    static const struct svg_style line = {.stroke = "#8c959f", .stroke_width = 1};
    const struct order_branch *branch = &drawing->branches[at], *above;
    double x;

    if (branch->parent == PREFIX_NONE)
        return;
    above = &drawing->branches[branch->parent];
    x = left_of(above) + INDENT / 2;
    svg_polyline(drawing->svg,
                 (const struct svg_point[]){{x, drawing->middles[branch->parent]},
                                            {x, drawing->middles[at]},
                                            {left_of(branch), drawing->middles[at]}},
                 3, &line);
}

/* Lines are broken at spaces only: a name may be wider. */
static double row_width(const char *row, const struct svg_font *font)
{
    double widest = fmin(svg_text_width(row, font), TEXT_WIDTH);

    for (const char *word = row; *word;) {
        size_t length = strcspn(word, " ");
        AUTO_FREE char *copy = strndup(word, length);

        widest = fmax(widest, copy ? svg_text_width(copy, font) : 0);
        word += length + strspn(word + length, " ");
    }
    return widest;
}

static int draw_branch(struct drawing *drawing, size_t at)
{
    const struct order_branch *branch = &drawing->branches[at];
    const struct look *look = look_of(drawing, branch);
    const struct svg_font bold = {.bold = true, .colour = look->colour}, plain = {0};
    struct svg_point text = {left_of(branch) + PADDING, drawing->y + PADDING + SVG_FONT_SIZE};
    struct svg_point below = {text.x, text.y + LINE};
    AUTO_FREE char *heading = NULL, *row = NULL;
    struct svg_box box = {left_of(branch), drawing->y, 0, 0};

    if (heading_of(drawing, branch, &heading) < 0 ||
        order_branch_words(drawing->picture->order, branch, drawing->picture->everything, &row) < 0)
        return -ENOMEM;
    box.width = 2 * PADDING + fmax(svg_text_width(heading, &bold), row_width(row, &plain));
    /* Without a picture the text is only laid out. */
    box.height = svg_wrapped_text(NULL, below, TEXT_WIDTH, row, &plain) - LINE + PADDING - box.y;
    svg_begin_group(drawing->svg, "branch", row);
    svg_rect(drawing->svg, &box, &look->box);
    svg_text(drawing->svg, text, heading, &bold);
    svg_wrapped_text(drawing->svg, below, TEXT_WIDTH, row, &plain);
    svg_end_group(drawing->svg);
    drawing->middles[at] = text.y - SVG_FONT_SIZE / 3;
    drawing->y += box.height + GAP;
    drawing->right = fmax(drawing->right, box.x + box.width);
    return 0;
}

/* Lines first, so that boxes lie over them. Where the boxes are is known once they are laid out. */
static int draw_boxes(struct drawing *drawing, size_t count)
{
    struct drawing layout = *drawing;
    int r = 0;

    layout.svg = NULL;
    for (size_t i = 0; i < count && r == 0; i++)
        r = draw_branch(&layout, i);
    for (size_t i = 0; i < count && r == 0; i++)
        draw_edge(drawing, i);
    for (size_t i = 0; i < count && r == 0; i++)
        r = draw_branch(drawing, i);
    return r;
}

static int draw(struct drawing *drawing, const char *words, size_t count)
{
    static const struct svg_font bold = {.bold = true}, note = {.size = 11, .colour = "#57606a"};
    AUTO_FREE char *legend = NULL;

    if (order_legend(drawing->picture->order, &legend) < 0)
        return -ENOMEM;
    drawing->right = MARGIN + TEXT_WIDTH;
    drawing->y = svg_wrapped_text(drawing->svg, (struct svg_point){MARGIN, MARGIN + SVG_FONT_SIZE},
                                  TEXT_WIDTH, words, &bold);
    if (draw_boxes(drawing, count) < 0)
        return -ENOMEM;
    if (*legend)
        drawing->y = svg_wrapped_text(drawing->svg, (struct svg_point){MARGIN, drawing->y + SVG_FONT_SIZE},
                                      TEXT_WIDTH, legend, &note);
    return 0;
}

char *order_picture_svg(const struct order_picture *picture, size_t *ret_undrawn)
{
    AUTO_FREE struct order_branch *branches = NULL;
    AUTO_FREE double *middles = NULL;
    AUTO_FREE char *words = NULL;
    struct drawing drawing = {.picture = picture};
    size_t all = 0, count;

    if (order_words(picture->order, &words) < 0 ||
        order_branches(picture->order, picture->everything, &branches, &all) < 0)
        return NULL;
    count = all < picture->most ? all : picture->most;
    middles = calloc(count + 1, sizeof(*middles));
    drawing.branches = branches;
    drawing.middles = middles;
    drawing.svg = svg_new();
    if (!middles || draw(&drawing, words, count) < 0) {
        svg_free(drawing.svg);
        return NULL;
    }
    *ret_undrawn = all - count;
    return svg_finish(drawing.svg, drawing.right + MARGIN, drawing.y + MARGIN, "Threads in order of progress",
                      words, picture->form);
}
