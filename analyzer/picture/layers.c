/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Graphviz gets boxes without texts, whose sizes are known: it has no need of fonts then, and the picture is
 * the same everywhere. Its points are our pixels, with y upwards.
 */
#include "analyzer/picture/layers.h"

#include <errno.h>
#include <graphviz/gvc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define MARGIN 4 /* around everything, for the strokes of boxes */

struct graph {
    Agraph_t *graph;
    Agnode_t **nodes;
    bool placed;
};

/* What Graphviz has to say is for its authors. */
static int say_nothing(char *message)
{
    return 0;
}

/* Graphviz reads its configuration for each context, and does not give back what that took: so there is one
 * for all graphs, as long as the process lives. */
static GVC_t *the_context(void)
{
    static GVC_t *context;

    if (!context) {
        agseterrf(say_nothing);
        context = gvContext();
    }
    return context;
}

static void graph_release(struct graph *graph)
{
    if (graph->placed)
        gvFreeLayout(the_context(), graph->graph);
    if (graph->graph)
        agclose(graph->graph);
    free(graph->nodes);
}

/* Graphviz takes names and values that it does not change, but not as const. */
static void set(void *object, const char *name, const char *value)
{
    agsafeset(object, (char *)name, (char *)value, (char *)"");
}

static void set_inches(void *object, const char *name, double pixels)
{
    char value[48];
    long long thousandths = (long long)(pixels / POINTS_PER_INCH * 10000 + 0.5);

    snprintf(value, sizeof(value), "%lld.%04lld", thousandths / 10000, thousandths % 10000);
    set(object, name, value);
}

static int make_graph(struct graph *graph, const struct layers_box *boxes, size_t box_count)
{
    graph->graph = agopen((char *)"layers", Agdirected, NULL);
    graph->nodes = calloc(box_count + 1, sizeof(*graph->nodes));
    if (!the_context() || !graph->graph || !graph->nodes)
        return -ENOMEM;
    set(graph->graph, "nodesep", "0.25");
    set(graph->graph, "ranksep", "0.4");
    for (size_t i = 0; i < box_count; i++) {
        char name[24];

        snprintf(name, sizeof(name), "%zu", i);
        graph->nodes[i] = agnode(graph->graph, name, 1);
        if (!graph->nodes[i])
            return -ENOMEM;
        set(graph->nodes[i], "label", "");
        set(graph->nodes[i], "shape", "box");
        set(graph->nodes[i], "fixedsize", "true");
        set_inches(graph->nodes[i], "width", boxes[i].width);
        set_inches(graph->nodes[i], "height", boxes[i].height);
    }
    return 0;
}

/* A spline of Graphviz is a point and then three for each piece. Whole numbers are exact enough, and the same
 * in every locale. */
static char *path_of(Agedge_t *edge, double height)
{
    const splines *splines = ED_spl(edge);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    for (size_t i = 0; splines && i < (size_t)splines->size; i++)
        for (size_t j = 0; j < (size_t)splines->list[i].size; j++) {
            const pointf *point = &splines->list[i].list[j];

            fprintf(out, "%s%ld %ld",
                    j == 0   ? "M"
                    : j == 1 ? "C"
                             : " ",
                    lround(point->x) + MARGIN, lround(height - point->y) + MARGIN);
        }
    if (fclose(out)) {
        free(text);
        return NULL;
    }
    return text;
}

int layers_place(struct layers_box *boxes, size_t box_count, struct layers_edge *edges, size_t edge_count,
                 struct svg_point *ret_size)
{
    CLEANUP(graph_release) struct graph graph = {0};
    AUTO_FREE Agedge_t **drawn = calloc(edge_count + 1, sizeof(*drawn));
    int r = drawn ? make_graph(&graph, boxes, box_count) : -ENOMEM;
    boxf bounds;

    for (size_t i = 0; i < edge_count && !r; i++) {
        drawn[i] = agedge(graph.graph, graph.nodes[edges[i].upper], graph.nodes[edges[i].lower], NULL, 1);
        if (!drawn[i])
            return -ENOMEM;
        set(drawn[i], "arrowhead", "none");
    }
    if (r)
        return r;
    if (gvLayout(the_context(), graph.graph, "dot"))
        return -EIO;
    graph.placed = true;
    bounds = GD_bb(graph.graph);
    for (size_t i = 0; i < box_count; i++)
        boxes[i].centre = (struct svg_point){ND_coord(graph.nodes[i]).x + MARGIN,
                                             bounds.UR.y - ND_coord(graph.nodes[i]).y + MARGIN};
    for (size_t i = 0; i < edge_count; i++) {
        edges[i].path = path_of(drawn[i], bounds.UR.y);
        if (!edges[i].path)
            return -ENOMEM;
    }
    *ret_size = (struct svg_point){bounds.UR.x + 2 * MARGIN, bounds.UR.y + 2 * MARGIN};
    return 0;
}
