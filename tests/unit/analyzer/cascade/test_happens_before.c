/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The must-happen-before graph answers as a search over its edges would. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "analyzer/cascade/happens_before.h"
#include "tests/unit/analyzer/streams.h"

enum { NODES = 400, ROUNDS = 60, MOST_LINES = 64 };

/* reaches[a][b]: by the edges and the lines, looked up node by node. */
static bool reaches[NODES][NODES];

struct growing {
    struct hb_graph *graph;
    uint32_t lines[MOST_LINES];
    bool ended[MOST_LINES];
    size_t line_count;
    uint64_t seed;
};

static void note_before(uint32_t before, uint32_t node)
{
    reaches[before][node] = true;
    for (uint32_t i = 0; i < before; i++)
        reaches[i][node] = reaches[i][node] || reaches[i][before];
}

/* A line that has not ended, or a new one. The youngest never ends, so that there is always one. */
static size_t pick_line(struct growing *growing)
{
    size_t at;

    if (!growing->line_count || (growing->line_count < MOST_LINES && random_below(&growing->seed, 12) == 0)) {
        cr_assert_eq(hb_graph_line(growing->graph, random_below(&growing->seed, 2),
                                   &growing->lines[growing->line_count]),
                     0);
        return growing->line_count++;
    }
    do
        at = random_below(&growing->seed, (uint32_t)growing->line_count);
    while (growing->ended[at]);
    return at;
}

static void add_random(struct growing *growing, uint32_t number)
{
    size_t at = pick_line(growing);
    uint32_t line = growing->lines[at], length = hb_line_length(growing->graph, line), node;
    struct hb_cause causes[3];
    size_t count = number ? random_below(&growing->seed, 3) : 0;

    for (size_t i = 0; i < count; i++)
        causes[i] = (struct hb_cause){random_below(&growing->seed, number), HB_MESSAGE};
    cr_assert_eq(hb_graph_add(growing->graph, line, causes, count, &node), 0);
    cr_assert_eq(node, number);
    if (length)
        note_before(hb_line_node(growing->graph, line, length - 1), node);
    for (size_t i = 0; i < count; i++)
        note_before(causes[i].node, node);
    if (random_below(&growing->seed, 10) == 0 && at + 1 < growing->line_count) {
        growing->ended[at] = true;
        cr_assert_eq(hb_graph_end(growing->graph, line), 0);
    }
}

static void check(const struct growing *growing)
{
    for (uint32_t a = 0; a < NODES; a++)
        for (uint32_t b = 0; b < NODES; b++)
            cr_assert_eq(hb_before(growing->graph, a, b), reaches[a][b], "%u before %u", a, b);
    for (size_t i = 0; i < growing->line_count; i++)
        for (uint32_t b = 0; b < NODES; b += 7) {
            uint32_t line = growing->lines[i], known = 0;

            for (uint32_t j = 0; j < hb_line_length(growing->graph, line); j++) {
                uint32_t node = hb_line_node(growing->graph, line, j);

                known += node == b || reaches[node][b];
            }
            cr_assert_eq(hb_known(growing->graph, line, b), known);
        }
}

Test(happens_before, random_graphs)
{
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        struct growing growing = {.seed = round};

        for (size_t a = 0; a < NODES; a++)
            for (size_t b = 0; b < NODES; b++)
                reaches[a][b] = false;
        cr_assert_eq(hb_graph_new(&growing.graph), 0);
        for (uint32_t i = 0; i < NODES; i++)
            add_random(&growing, i);
        check(&growing);
        hb_graph_free(growing.graph);
    }
}

Test(happens_before, lines_share_chains)
{
    struct hb_graph *graph;
    uint32_t parent, node, joined = HB_NONE;

    cr_assert_eq(hb_graph_new(&graph), 0);
    cr_assert_eq(hb_graph_line(graph, false, &parent), 0);
    for (int i = 0; i < 1000; i++) {
        uint32_t child;
        struct hb_cause cause = {0, HB_CREATE};

        cr_assert_eq(
            hb_graph_add(graph, parent, &(struct hb_cause){joined, HB_JOIN}, joined != HB_NONE, &cause.node),
            0);
        cr_assert_eq(hb_graph_line(graph, false, &child), 0);
        cr_assert_eq(hb_graph_add(graph, child, &cause, 1, &node), 0);
        cr_assert_eq(hb_graph_end(graph, child), 0);
        joined = node;
    }
    cr_assert_eq(hb_line_count(graph), 1001u);
    cr_assert_eq(hb_chain_count(graph), 2u,
                 "a thread that begins after another was joined continues its chain");
    hb_graph_free(graph);
}

Test(happens_before, refuses_causes_of_later)
{
    struct hb_graph *graph;
    uint32_t line, node;

    cr_assert_eq(hb_graph_new(&graph), 0);
    cr_assert_eq(hb_graph_line(graph, false, &line), 0);
    cr_assert_eq(hb_graph_add(graph, line, &(struct hb_cause){0, HB_POST}, 1, &node), -EINVAL);
    cr_assert_eq(hb_graph_add(graph, line, NULL, 0, &node), 0);
    cr_assert_eq(hb_graph_end(graph, line), 0);
    cr_assert_eq(hb_graph_add(graph, line, NULL, 0, &node), -EINVAL);
    hb_graph_free(graph);
}
