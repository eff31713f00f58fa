/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A tree that is too large is drawn from its root on: of the parts that could be split, the one whose merge
 * is the highest, until there are as many leaves as have room. The rest of each part is one leaf.
 */
#include "analyzer/picture/dendrogram_picture.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/picture/folded_names.h"
#include "analyzer/picture/svg.h"
#include "base/cleanup.h"

#define ROW 18.0
#define TREE_WIDTH 280.0
#define WIDEST_NAME 170.0
#define MARGIN 8.0
#define AXIS_HEIGHT 38.0
#define LEAST_TICKS 3.0

/* ------------------------------------------------------------------------------------------ large trees */

/* Marks the joins that are drawn. */
static int choose_joins(const struct dendrogram *dendrogram, size_t most, bool *drawn)
{
    AUTO_FREE uint32_t *edge = calloc(dendrogram->leaf_count + 1, sizeof(*edge));
    size_t edge_count = 0;

    if (!edge)
        return -ENOMEM;
    if (dendrogram->leaf_count > 1)
        edge[edge_count++] = dendrogram->root;
    for (size_t leaves = 1; leaves < most && edge_count; leaves++) {
        const struct dendrogram_join *join;
        size_t highest = 0;

        for (size_t i = 1; i < edge_count; i++)
            if (dendrogram->joins[edge[i]].height > dendrogram->joins[edge[highest]].height)
                highest = i;
        join = &dendrogram->joins[edge[highest]];
        drawn[edge[highest]] = true;
        edge[highest] = edge[--edge_count];
        if (join->upper != DENDROGRAM_LEAF)
            edge[edge_count++] = join->upper;
        if (join->lower != DENDROGRAM_LEAF)
            edge[edge_count++] = join->lower;
    }
    return 0;
}

static uint32_t place_of(const uint32_t *places, const bool *drawn, uint32_t join)
{
    return join != DENDROGRAM_LEAF && drawn[join] ? places[join] : DENDROGRAM_LEAF;
}

/* The tree with these joins alone: what lies between two of them is one leaf. `objects` is borrowed, but in
 * ascending order within the new leaves. */
static void contract(const struct dendrogram *dendrogram, const bool *drawn, uint32_t *places,
                     struct dendrogram *ret_small)
{
    for (size_t i = 0; i + 1 < dendrogram->leaf_count; i++) {
        places[i] = (uint32_t)ret_small->leaf_count;
        if (!drawn[i])
            continue;
        ret_small->starts[ret_small->leaf_count + 1] = dendrogram->starts[i + 1];
        ret_small->leaf_count++;
    }
    ret_small->starts[++ret_small->leaf_count] = dendrogram->starts[dendrogram->leaf_count];
    for (size_t i = 0; i + 1 < dendrogram->leaf_count; i++) {
        struct dendrogram_join *join = &ret_small->joins[places[i]];

        if (!drawn[i])
            continue;
        *join = dendrogram->joins[i];
        join->upper = place_of(places, drawn, join->upper);
        join->lower = place_of(places, drawn, join->lower);
    }
    ret_small->root = dendrogram->leaf_count > 1 ? places[dendrogram->root] : 0;
}

/* The part of the tree that is drawn; release it. */
static int make_small(const struct dendrogram *dendrogram, size_t most, struct dendrogram *ret_small)
{
    AUTO_FREE bool *drawn = calloc(dendrogram->leaf_count + 1, sizeof(*drawn));
    AUTO_FREE uint32_t *places = calloc(dendrogram->leaf_count + 1, sizeof(*places));
    size_t objects = dendrogram->starts[dendrogram->leaf_count];

    ret_small->starts = calloc(dendrogram->leaf_count + 1, sizeof(*ret_small->starts));
    ret_small->joins = calloc(dendrogram->leaf_count + 1, sizeof(*ret_small->joins));
    ret_small->objects = calloc(objects + 1, sizeof(*ret_small->objects));
    if (!drawn || !places || !ret_small->starts || !ret_small->joins || !ret_small->objects ||
        choose_joins(dendrogram, most, drawn) < 0)
        return -ENOMEM;
    contract(dendrogram, drawn, places, ret_small);
    for (size_t i = 0; i < objects; i++)
        ret_small->objects[i] = dendrogram->objects[i];
    for (size_t leaf = 0; leaf < ret_small->leaf_count; leaf++)
        folded_sort(ret_small->objects + ret_small->starts[leaf],
                    ret_small->starts[leaf + 1] - ret_small->starts[leaf]);
    return 0;
}

/* ------------------------------------------------------------------------------------------ drawing */

struct drawing {
    const struct dendrogram_picture *picture;
    const struct dendrogram *dendrogram;
    struct svg *svg;
    double *ys;           /* by join: its middle */
    double left, highest; /* x of distance 0; the largest distance of the scale */
};

static double x_of(const struct drawing *drawing, double height)
{
    return drawing->left + height / drawing->highest * TREE_WIDTH;
}

static double leaf_y(size_t leaf)
{
    return MARGIN + ((double)leaf + 0.5) * ROW;
}

/* One part of a join: the leaf next to it, or another join. */
static struct svg_point part_of(const struct drawing *drawing, uint32_t part, size_t leaf)
{
    if (part == DENDROGRAM_LEAF)
        return (struct svg_point){x_of(drawing, 0), leaf_y(leaf)};
    return (struct svg_point){x_of(drawing, drawing->dendrogram->joins[part].height), drawing->ys[part]};
}

static void draw_join(const struct drawing *drawing, uint32_t at)
{
    static const struct svg_style line = {.stroke = "#1f4e79", .stroke_width = 1.5};
    const struct dendrogram_join *join = &drawing->dendrogram->joins[at];
    struct svg_point upper = part_of(drawing, join->upper, at);
    struct svg_point lower = part_of(drawing, join->lower, at + 1);
    double x = x_of(drawing, join->height);
    struct svg_point points[] = {upper, {x, upper.y}, {x, lower.y}, lower};
    AUTO_FREE char *title = NULL;

    if (asprintf(&title, "%u threads, %.4g apart", join->size, join->distance) < 0)
        title = NULL;
    svg_begin_group(drawing->svg, "join", title);
    svg_polyline(drawing->svg, points, 4, &line);
    svg_end_group(drawing->svg);
    drawing->ys[at] = (upper.y + lower.y) / 2;
}

/* Parts before the wholes: the height says which is which, and for equal heights the way down from the root.
 */
static int draw_joins(const struct drawing *drawing)
{
    const struct dendrogram *dendrogram = drawing->dendrogram;
    AUTO_FREE uint32_t *order = calloc(dendrogram->leaf_count + 1, sizeof(*order));
    size_t count = 0;

    if (!order)
        return -ENOMEM;
    if (dendrogram->leaf_count > 1)
        order[count++] = dendrogram->root;
    for (size_t i = 0; i < count; i++) {
        const struct dendrogram_join *join = &dendrogram->joins[order[i]];

        if (join->upper != DENDROGRAM_LEAF)
            order[count++] = join->upper;
        if (join->lower != DENDROGRAM_LEAF)
            order[count++] = join->lower;
    }
    while (count--)
        draw_join(drawing, order[count]);
    return 0;
}

static bool leaf_is_marked(const struct drawing *drawing, size_t leaf)
{
    const struct dendrogram *dendrogram = drawing->dendrogram;

    for (size_t i = dendrogram->starts[leaf]; i < dendrogram->starts[leaf + 1]; i++)
        if (drawing->picture->marked && drawing->picture->marked[dendrogram->objects[i]])
            return true;
    return false;
}

static char *leaf_name(const struct drawing *drawing, size_t leaf)
{
    const struct dendrogram *dendrogram = drawing->dendrogram;

    return folded_name(drawing->picture->names, dendrogram->objects + dendrogram->starts[leaf],
                       dendrogram->starts[leaf + 1] - dendrogram->starts[leaf]);
}

static int draw_leaf(const struct drawing *drawing, size_t leaf)
{
    static const struct svg_style mark = {.fill = "#b34700"};
    AUTO_FREE char *name = leaf_name(drawing, leaf);
    struct svg_font font = {.anchor = SVG_END, .bold = leaf_is_marked(drawing, leaf)};
    struct svg_point at = {drawing->left - 12, leaf_y(leaf) + 4};
    char commands[96];

    if (!name)
        return -ENOMEM;
    svg_begin_group(drawing->svg, "leaf", NULL);
    svg_text(drawing->svg, at, name, &font);
    if (font.bold) {
        snprintf(commands, sizeof(commands), "M%d %d l-6 -4 v8 z", (int)drawing->left - 3, (int)at.y - 4);
        svg_path(drawing->svg, commands, &mark);
    }
    svg_end_group(drawing->svg);
    return 0;
}

/* 1, 2 or 5 times a power of ten, so that there are a few of them up to the highest. */
static double tick_step(double highest)
{
    double step = pow(10, floor(log10(highest / LEAST_TICKS)));

    return step * 5 <= highest / LEAST_TICKS ? step * 5 : step * 2 <= highest / LEAST_TICKS ? step * 2 : step;
}

static void draw_axis(const struct drawing *drawing)
{
    static const struct svg_style grid = {.stroke = "#dddddd", .stroke_width = 1};
    static const struct svg_font small = {.size = 11, .anchor = SVG_MIDDLE};
    static const struct svg_font label = {.size = 11, .anchor = SVG_MIDDLE, .italic = true};
    double bottom = MARGIN + (double)drawing->dendrogram->leaf_count * ROW;
    double step = tick_step(drawing->highest);

    for (int i = 0; i * step <= drawing->highest * 1.0001; i++) {
        double x = x_of(drawing, i * step);
        char text[32];

        snprintf(text, sizeof(text), "%.4g", i * step);
        svg_line(drawing->svg, (struct svg_point){x, MARGIN}, (struct svg_point){x, bottom}, &grid);
        svg_text(drawing->svg, (struct svg_point){x, bottom + 14}, text, &small);
    }
    svg_text(drawing->svg, (struct svg_point){x_of(drawing, drawing->highest / 2), bottom + 30}, "distance",
             &label);
}

static int measure_names(struct drawing *drawing)
{
    double widest = 0;

    for (size_t leaf = 0; leaf < drawing->dendrogram->leaf_count; leaf++) {
        AUTO_FREE char *name = leaf_name(drawing, leaf);
        struct svg_font font = {.bold = true};

        if (!name)
            return -ENOMEM;
        widest = fmax(widest, svg_text_width(name, &font));
    }
    drawing->left = fmin(widest, WIDEST_NAME) + 20;
    return 0;
}

static int draw(struct drawing *drawing)
{
    int r = measure_names(drawing);

    if (!r) {
        draw_axis(drawing);
        r = draw_joins(drawing);
    }
    for (size_t leaf = 0; leaf < drawing->dendrogram->leaf_count && !r; leaf++)
        r = draw_leaf(drawing, leaf);
    return r;
}

char *dendrogram_svg(const struct dendrogram_picture *picture, size_t *ret_undrawn)
{
    CLEANUP(dendrogram_release) struct dendrogram small = {0};
    AUTO_FREE double *ys = calloc(picture->dendrogram->leaf_count + 1, sizeof(*ys));
    struct drawing drawing = {picture, &small, svg_new(), ys, 0, 1};

    if (!ys || !picture->dendrogram->leaf_count || make_small(picture->dendrogram, picture->most, &small)) {
        svg_free(drawing.svg);
        return NULL;
    }
    if (small.leaf_count > 1 && small.joins[small.root].height > 0)
        drawing.highest = small.joins[small.root].height;
    if (draw(&drawing) < 0) {
        svg_free(drawing.svg);
        return NULL;
    }
    *ret_undrawn = picture->dendrogram->leaf_count - small.leaf_count;
    return svg_finish(drawing.svg, drawing.left + TREE_WIDTH + 30,
                      2 * MARGIN + (double)small.leaf_count * ROW + AXIS_HEIGHT, picture->title,
                      picture->description, SVG_INLINE);
}
