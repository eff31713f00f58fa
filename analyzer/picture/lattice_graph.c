/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/picture/lattice_graph.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/cluster/entry_text.h"
#include "analyzer/picture/folded_names.h"
#include "analyzer/picture/layers.h"
#include "analyzer/symbols/short_names.h"
#include "base/cleanup.h"

#define LINE 16.0
#define PADDING 8.0
#define LEAST_WIDTH 30.0

enum { FEWEST = 8, MOST_LINES = 6, NAME_WIDTH = 48, LINE_SIZE = SHORT_NAME_SIZE(NAME_WIDTH) };

/* The texts of a box: attributes first, threads last. */
struct node {
    uint32_t concept;
    char lines[MOST_LINES][LINE_SIZE];
    size_t line_count;
    char *threads; /* NULL: none of its own */
    size_t thread_count;
};

struct drawing {
    const struct lattice_graph *graph;
    struct lattice_objects members;
    uint32_t *order; /* concepts that are drawn, from the top */
    size_t count;
    uint32_t *place; /* by concept: in `order` */
    size_t *weights; /* by concept: threads of its extent */
    struct node *nodes;
    struct layers_box *boxes;
    struct layers_edge *edges;
    size_t edge_count;
};

static void drawing_release(struct drawing *drawing)
{
    for (size_t i = 0; drawing->nodes && i < drawing->count; i++)
        free(drawing->nodes[i].threads);
    for (size_t i = 0; drawing->edges && i < drawing->edge_count; i++)
        free(drawing->edges[i].path);
    free(drawing->nodes);
    free(drawing->boxes);
    free(drawing->edges);
    free(drawing->order);
    free(drawing->place);
    free(drawing->weights);
    lattice_objects_release(&drawing->members);
}

/* ------------------------------------------------------------------------------------------ the choice */

/* How many threads each concept has. */
static int weigh(struct drawing *drawing)
{
    const struct lattice_graph *graph = drawing->graph;

    drawing->weights = calloc(graph->lattice->count + 1, sizeof(*drawing->weights));
    if (!drawing->weights || lattice_objects_of(graph->lattice, &drawing->members) < 0)
        return -ENOMEM;
    for (uint32_t id = 0; id < graph->lattice->count; id++) {
        AUTO_FREE uint32_t *extent = NULL;

        if (lattice_extent(graph->lattice, &drawing->members, id, &extent) < 0)
            return -ENOMEM;
        for (size_t i = 0; i < drawing->members.extent_size[id]; i++)
            drawing->weights[id] += graph->first[extent[i] + 1] - graph->first[extent[i]];
    }
    return 0;
}

static int compare_sizes(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return x > y ? -1 : x < y;
}

/* The least number of threads with which there are no more concepts than wanted (but for the top alone). */
static int find_least(const struct drawing *drawing, size_t *ret_least)
{
    size_t count = drawing->graph->lattice->count, most = drawing->graph->most;
    AUTO_FREE size_t *sorted = calloc(count + 1, sizeof(*sorted));

    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        sorted[i] = drawing->weights[i];
    qsort(sorted, count, sizeof(*sorted), compare_sizes);
    if (count <= most) {
        *ret_least = 0;
        return 0;
    }
    /* The first that has no room, and all that are as small, are left out. */
    *ret_least = sorted[most] + 1;
    if (*ret_least > sorted[0])
        *ret_least = sorted[0];
    return 0;
}

static int choose(struct drawing *drawing, size_t *ret_least)
{
    const struct lattice *lattice = drawing->graph->lattice;
    size_t kept = 0;

    drawing->order = calloc(lattice->count + 1, sizeof(*drawing->order));
    drawing->place = calloc(lattice->count + 1, sizeof(*drawing->place));
    if (!drawing->order || !drawing->place || weigh(drawing) < 0 || find_least(drawing, ret_least) < 0)
        return -ENOMEM;
    lattice_order(lattice, drawing->order);
    for (size_t i = 0; i < lattice->count; i++) {
        uint32_t id = drawing->order[i];

        drawing->place[id] = UINT32_MAX;
        if (drawing->weights[id] < *ret_least)
            continue;
        drawing->place[id] = (uint32_t)kept;
        drawing->order[kept++] = id;
    }
    drawing->count = kept;
    return 0;
}

/* ------------------------------------------------------------------------------------------ boxes */

static int add_attributes(const struct drawing *drawing, struct node *node)
{
    CLEANUP(attribute_set_release) struct attribute_set own = {0};
    size_t shown;
    char text[512];

    if (lattice_own_attributes(drawing->graph->lattice, node->concept, &own) < 0)
        return -ENOMEM;
    shown = own.count <= MOST_LINES ? own.count : MOST_LINES - 1;
    for (size_t i = 0; i < shown; i++) {
        attribute_text(drawing->graph->summary, &drawing->graph->attributes->attributes[own.ids[i]], text,
                       sizeof(text));
        name_shorten(text, NAME_WIDTH, node->lines[node->line_count++], LINE_SIZE);
    }
    if (shown < own.count)
        snprintf(node->lines[node->line_count++], LINE_SIZE, "and %zu more", own.count - shown);
    return 0;
}

static int add_threads(const struct drawing *drawing, struct node *node)
{
    const struct lattice_graph *graph = drawing->graph;
    const size_t *own = drawing->members.first + node->concept;
    AUTO_FREE uint32_t *threads = NULL;

    for (size_t i = own[0]; i < own[1]; i++) {
        uint32_t object = drawing->members.objects[i];

        node->thread_count += graph->first[object + 1] - graph->first[object];
    }
    if (!node->thread_count)
        return 0;
    threads = calloc(node->thread_count, sizeof(*threads));
    if (!threads)
        return -ENOMEM;
    node->thread_count = 0;
    for (size_t i = own[0]; i < own[1]; i++) {
        uint32_t object = drawing->members.objects[i];

        for (size_t j = graph->first[object]; j < graph->first[object + 1]; j++)
            threads[node->thread_count++] = graph->threads[j];
    }
    folded_sort(threads, node->thread_count);
    node->threads = folded_name(graph->names, threads, node->thread_count);
    return node->threads ? 0 : -ENOMEM;
}

static struct layers_box box_of(const struct node *node)
{
    static const struct svg_font bold = {.bold = true};
    size_t lines = node->line_count + (node->threads ? 1 : 0);
    double widest = node->threads ? svg_text_width(node->threads, &bold) : 0;

    for (size_t i = 0; i < node->line_count; i++)
        widest = fmax(widest, svg_text_width(node->lines[i], NULL));
    return (struct layers_box){.width = ceil(fmax(widest + 2 * PADDING, LEAST_WIDTH)),
                               .height = (double)(lines ? lines : 1) * LINE + PADDING};
}

static int make_boxes(struct drawing *drawing)
{
    drawing->nodes = calloc(drawing->count + 1, sizeof(*drawing->nodes));
    drawing->boxes = calloc(drawing->count + 1, sizeof(*drawing->boxes));
    if (!drawing->nodes || !drawing->boxes)
        return -ENOMEM;
    for (size_t i = 0; i < drawing->count; i++) {
        struct node *node = &drawing->nodes[i];

        node->concept = drawing->order[i];
        if (add_attributes(drawing, node) < 0 || add_threads(drawing, node) < 0)
            return -ENOMEM;
        drawing->boxes[i] = box_of(node);
    }
    return 0;
}

static int make_edges(struct drawing *drawing)
{
    const struct lattice *lattice = drawing->graph->lattice;
    size_t most = 0;

    for (size_t i = 0; i < drawing->count; i++)
        most += lattice->concepts[drawing->order[i]].upper_count;
    drawing->edges = calloc(most + 1, sizeof(*drawing->edges));
    if (!drawing->edges)
        return -ENOMEM;
    for (size_t i = 0; i < drawing->count; i++) {
        const struct lattice_concept *concept = &lattice->concepts[drawing->order[i]];

        for (size_t j = 0; j < concept->upper_count; j++)
            drawing->edges[drawing->edge_count++] =
                (struct layers_edge){.upper = drawing->place[concept->upper[j]], .lower = i};
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------ the picture */

static void draw_texts(struct svg *svg, const struct node *node, const struct layers_box *box)
{
    static const struct svg_font plain = {.anchor = SVG_MIDDLE};
    static const struct svg_font bold = {.anchor = SVG_MIDDLE, .bold = true};
    static const struct svg_font faint = {.anchor = SVG_MIDDLE, .colour = "#666666"};
    struct svg_point at = {box->centre.x, box->centre.y - box->height / 2 + PADDING / 2 + 12};

    for (size_t i = 0; i < node->line_count; i++, at.y += LINE)
        svg_text(svg, at, node->lines[i], &plain);
    if (node->threads)
        svg_text(svg, at, node->threads, &bold);
    else if (!node->line_count)
        svg_text(svg, at, "\xc2\xb7", &faint);
}

static void draw_concept(const struct drawing *drawing, struct svg *svg, size_t at)
{
    static const struct svg_style plain = {
        .fill = "#f6f8fa", .stroke = "#57606a", .stroke_width = 1, .radius = 4};
    static const struct svg_style with_threads = {
        .fill = "#deedf8", .stroke = "#0072b2", .stroke_width = 2, .radius = 4};
    const struct node *node = &drawing->nodes[at];
    const struct layers_box *box = &drawing->boxes[at];
    struct svg_box place = {box->centre.x - box->width / 2, box->centre.y - box->height / 2, box->width,
                            box->height};
    AUTO_FREE char *title = NULL;
    size_t weight = drawing->weights[node->concept];

    if (asprintf(&title, "C%zu: %zu thread%s share %zu attribute%s", at, weight, weight == 1 ? "" : "s",
                 drawing->graph->lattice->concepts[node->concept].intent_size,
                 drawing->graph->lattice->concepts[node->concept].intent_size == 1 ? "" : "s") < 0)
        title = NULL;
    svg_begin_group(svg, "concept", title);
    svg_rect(svg, &place, node->threads ? &with_threads : &plain);
    draw_texts(svg, node, box);
    svg_end_group(svg);
}

static char *draw(struct drawing *drawing, struct svg_point size)
{
    static const struct svg_style line = {.stroke = "#57606a", .stroke_width = 1.2};
    struct svg *svg = svg_new();

    for (size_t i = 0; i < drawing->edge_count; i++)
        svg_path(svg, drawing->edges[i].path, &line);
    for (size_t i = 0; i < drawing->count; i++)
        draw_concept(drawing, svg, i);
    return svg_finish(svg, size.x, size.y, drawing->graph->title, drawing->graph->description, SVG_INLINE);
}

/* One attempt; *ret_width is how wide it came out. */
static int try_draw(const struct lattice_graph *graph, struct lattice_drawn *ret_drawn, double *ret_width)
{
    CLEANUP(drawing_release) struct drawing drawing = {.graph = graph};
    struct svg_point size;
    size_t least = 0;
    char *svg;
    int r = choose(&drawing, &least);

    if (!r)
        r = make_boxes(&drawing);
    if (!r)
        r = make_edges(&drawing);
    if (!r)
        r = layers_place(drawing.boxes, drawing.count, drawing.edges, drawing.edge_count, &size);
    if (r)
        return r;
    svg = draw(&drawing, size);
    if (!svg)
        return -ENOMEM;
    *ret_drawn = (struct lattice_drawn){svg, drawing.count, least};
    *ret_width = size.x;
    return 0;
}

int lattice_graph_draw(const struct lattice_graph *graph, struct lattice_drawn *ret_drawn)
{
    struct lattice_graph smaller = *graph;

    for (;; smaller.most = smaller.most * 2 / 3) {
        struct lattice_drawn drawn;
        double width;
        int r = try_draw(&smaller, &drawn, &width);

        if (r)
            return r;
        if (width <= graph->widest || smaller.most <= FEWEST) {
            *ret_drawn = drawn;
            return 0;
        }
        free(drawn.svg);
    }
}
