/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/cascade/happens_before.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

/* How many chains without a line at their end are looked at for a new line. More would find longer chains,
 * and cost more for each line. */
enum { MOST_IDLE_CHAINS = 64, MOST_BASES = 4 };

/* From `position` on, the first `known` nodes of the other chain are known to be over. */
struct step {
    uint32_t position, known;
};

struct component {
    uint32_t chain; /* the other one */
    struct step *steps;
    size_t count, capacity;
};

struct chain {
    struct component *components; /* by chain */
    size_t count, capacity;
    uint32_t length; /* nodes */
    uint32_t tail;   /* the last one */
    /* Nodes before the first one. What is known there is looked up there, and not copied: a run may have a
     * million short lines. They are of chains that have no bases. */
    uint32_t bases[MOST_BASES];
    uint32_t base_count;
};

struct line {
    uint32_t chain, first; /* HB_NONE before the first node; its position in the chain */
    uint32_t *nodes;
    size_t count, capacity;
    bool ended, brief;
};

struct place {
    uint32_t line, index;
};

struct hb_graph {
    struct place *places; /* by node */
    size_t node_count, node_capacity;
    struct line *lines;
    size_t line_count, line_capacity;
    struct chain *chains;
    size_t chain_count, chain_capacity;
    struct hb_edge *edges;
    size_t edge_count, edge_capacity;
    uint32_t idle[MOST_IDLE_CHAINS]; /* chains whose last line has ended, youngest last */
    size_t idle_count;
};

const char *hb_edge_name(enum hb_edge_kind kind)
{
    static const char *const names[] = {"create",  "join",    "signal", "post",  "barrier",
                                        "message", "enqueue", "fifo",   "inside"};

    return kind < HB_EDGE_KINDS ? names[kind] : "?";
}

const char *hb_edge_words(enum hb_edge_kind kind)
{
    static const char *const words[] = {
        "the start",   "the end of the thread", "the signal",          "the semaphore", "the barrier",
        "the message", "the event's enqueue",   "the event before it", "the thread",
    };

    return kind < HB_EDGE_KINDS ? words[kind] : "?";
}

int hb_graph_new(struct hb_graph **ret_graph)
{
    struct hb_graph *graph = calloc(1, sizeof(*graph));

    if (!graph)
        return -ENOMEM;
    *ret_graph = graph;
    return 0;
}

void hb_graph_free(struct hb_graph *graph)
{
    if (!graph)
        return;
    for (size_t i = 0; i < graph->chain_count; i++) {
        for (size_t j = 0; j < graph->chains[i].count; j++)
            free(graph->chains[i].components[j].steps);
        free(graph->chains[i].components);
    }
    for (size_t i = 0; i < graph->line_count; i++)
        free(graph->lines[i].nodes);
    free(graph->chains);
    free(graph->lines);
    free(graph->places);
    free(graph->edges);
    free(graph);
}

/* ------------------------------------------------------------------------------------------ clocks */

static uint32_t position_of(const struct hb_graph *graph, uint32_t node)
{
    const struct place *place = &graph->places[node];

    return graph->lines[place->line].first + place->index;
}

static uint32_t chain_of(const struct hb_graph *graph, uint32_t node)
{
    return graph->lines[graph->places[node].line].chain;
}

/* Where the component of `other` is among those of `chain`, or would be. */
static size_t component_place(const struct chain *chain, uint32_t other)
{
    size_t low = 0, high = chain->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (chain->components[middle].chain < other)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* What is known at a position. The youngest steps are asked for most. */
static uint32_t known_at(const struct component *component, uint32_t position)
{
    size_t low = 0, high = component->count, width = 1;

    while (high && component->steps[high - 1].position > position) {
        size_t before = width < high ? high - width : 0;

        if (component->steps[before].position <= position) {
            low = before;
            break;
        }
        high = before;
        width *= 2;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (component->steps[middle].position <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? component->steps[low - 1].known : 0;
}

/* What the chain itself has learnt. */
static uint32_t chain_learnt(const struct chain *chain, uint32_t position, uint32_t other)
{
    size_t at = component_place(chain, other);

    if (at == chain->count || chain->components[at].chain != other)
        return 0;
    return known_at(&chain->components[at], position);
}

static uint32_t chain_knows(const struct hb_graph *graph, uint32_t number, uint32_t position, uint32_t other)
{
    const struct chain *chain = &graph->chains[number];
    uint32_t known = chain_learnt(chain, position, other);

    for (uint32_t i = 0; i < chain->base_count; i++) {
        uint32_t base = chain_of(graph, chain->bases[i]), base_position = position_of(graph, chain->bases[i]);
        uint32_t base_known =
            base == other ? base_position + 1 : chain_learnt(&graph->chains[base], base_position, other);

        if (base_known > known)
            known = base_known;
    }
    return known;
}

/* Says that the node at the chain's end knows so much of another chain, whose component is at `*place` or
 * behind it. */
static int learn(struct chain *chain, size_t *place, uint32_t position, uint32_t other, uint32_t known)
{
    struct component *component;
    size_t at = *place;

    while (at < chain->count && chain->components[at].chain < other)
        at++;
    *place = at;
    if (at == chain->count || chain->components[at].chain != other) {
        if (array_reserve(&chain->components, &chain->capacity, chain->count + 1) < 0)
            return -ENOMEM;
        memmove(chain->components + at + 1, chain->components + at,
                (chain->count - at) * sizeof(*chain->components));
        chain->components[at] = (struct component){.chain = other};
        chain->count++;
    }
    component = &chain->components[at];
    if (component->count && component->steps[component->count - 1].known >= known)
        return 0;
    if (component->count && component->steps[component->count - 1].position == position) {
        component->steps[component->count - 1].known = known;
        return 0;
    }
    if (component->count == component->capacity) {
        size_t capacity = component->capacity ? component->capacity * 2 : 2;
        struct step *steps = realloc(component->steps, capacity * sizeof(*steps));

        if (!steps)
            return -ENOMEM;
        component->steps = steps;
        component->capacity = capacity;
    }
    component->steps[component->count++] = (struct step){position, known};
    return 0;
}

/* The node at `position`, the last of `own`, comes after `cause`: it knows what the cause's chain has learnt.
 */
static int learn_one(struct hb_graph *graph, uint32_t own, uint32_t position, uint32_t cause)
{
    uint32_t other = chain_of(graph, cause), cause_position = position_of(graph, cause);
    const struct chain *source = &graph->chains[other];
    struct chain *chain = &graph->chains[own];
    size_t place = 0;
    int r;

    if (other == own || chain_knows(graph, own, position, other) > cause_position)
        return 0;
    place = component_place(chain, other);
    r = learn(chain, &place, position, other, cause_position + 1);
    place = 0;
    for (size_t i = 0; r == 0 && i < source->count; i++) {
        const struct component *component = &source->components[i];
        uint32_t known = component->chain == own ? 0 : known_at(component, cause_position);

        if (known)
            r = learn(chain, &place, position, component->chain, known);
    }
    return r;
}

static int learn_from(struct hb_graph *graph, uint32_t own, uint32_t position, uint32_t cause)
{
    uint32_t other = chain_of(graph, cause);
    int r = 0;

    if (other == own || chain_knows(graph, own, position, other) > position_of(graph, cause))
        return 0;
    for (uint32_t i = 0; i < graph->chains[other].base_count && r == 0; i++)
        r = learn_one(graph, own, position, graph->chains[other].bases[i]);
    return r < 0 ? r : learn_one(graph, own, position, cause);
}

/* The first node of a new chain comes after the causes. */
static int begin_chain(struct hb_graph *graph, uint32_t own, bool brief, const struct hb_cause *causes,
                       size_t count)
{
    struct chain *chain = &graph->chains[own];
    bool copied = !brief || count > MOST_BASES;
    int r = 0;

    for (size_t i = 0; i < count; i++)
        copied = copied || graph->chains[chain_of(graph, causes[i].node)].base_count;
    for (size_t i = 0; i < count && r == 0; i++) {
        if (copied)
            r = learn_from(graph, own, 0, causes[i].node);
        else
            chain->bases[chain->base_count++] = causes[i].node;
    }
    return r;
}

/* ------------------------------------------------------------------------------------------ growing */

int hb_graph_line(struct hb_graph *graph, bool brief, uint32_t *ret_line)
{
    if (graph->line_count >= HB_NONE)
        return -EOVERFLOW;
    if (array_reserve(&graph->lines, &graph->line_capacity, graph->line_count + 1) < 0)
        return -ENOMEM;
    graph->lines[graph->line_count] = (struct line){.chain = HB_NONE, .brief = brief};
    *ret_line = (uint32_t)graph->line_count++;
    return 0;
}

/* Whether a node is the same as a cause, or before it. */
static bool is_caused_by(const struct hb_graph *graph, const struct hb_cause *causes, size_t count,
                         uint32_t node)
{
    for (size_t i = 0; i < count; i++)
        if (causes[i].node == node || hb_before(graph, node, causes[i].node))
            return true;
    return false;
}

/* The chain for a line that begins after these causes: one that nobody continues and that is over by then, or
 * a new one. */
static int choose_chain(struct hb_graph *graph, const struct hb_cause *causes, size_t count,
                        uint32_t *ret_chain)
{
    for (size_t i = graph->idle_count; i-- > 0;) {
        uint32_t chain = graph->idle[i];

        if (!is_caused_by(graph, causes, count, graph->chains[chain].tail))
            continue;
        memmove(graph->idle + i, graph->idle + i + 1, (graph->idle_count - i - 1) * sizeof(*graph->idle));
        graph->idle_count--;
        *ret_chain = chain;
        return 0;
    }
    if (array_reserve(&graph->chains, &graph->chain_capacity, graph->chain_count + 1) < 0)
        return -ENOMEM;
    graph->chains[graph->chain_count] = (struct chain){.tail = HB_NONE};
    *ret_chain = (uint32_t)graph->chain_count++;
    return 0;
}

static int add_place(struct hb_graph *graph, uint32_t number, const struct hb_cause *causes, size_t count)
{
    struct line *line = &graph->lines[number];

    if (graph->node_count >= HB_NONE)
        return -EOVERFLOW;
    if (line->chain == HB_NONE) {
        int r = choose_chain(graph, causes, count, &line->chain);

        if (r < 0)
            return r;
        line->first = graph->chains[line->chain].length;
    }
    if (array_reserve(&graph->places, &graph->node_capacity, graph->node_count + 1) < 0 ||
        array_reserve(&line->nodes, &line->capacity, line->count + 1) < 0)
        return -ENOMEM;
    graph->places[graph->node_count] = (struct place){number, (uint32_t)line->count};
    line->nodes[line->count++] = (uint32_t)graph->node_count;
    return 0;
}

int hb_graph_add(struct hb_graph *graph, uint32_t line, const struct hb_cause *causes, size_t count,
                 uint32_t *ret_node)
{
    uint32_t node = (uint32_t)graph->node_count, chain, position;
    int r;

    if (line >= graph->line_count || graph->lines[line].ended)
        return -EINVAL;
    for (size_t i = 0; i < count; i++)
        if (causes[i].node >= node)
            return -EINVAL;
    r = add_place(graph, line, causes, count);
    if (r == 0 && array_reserve(&graph->edges, &graph->edge_capacity, graph->edge_count + count) < 0)
        r = -ENOMEM;
    if (r < 0)
        return r;
    chain = graph->lines[line].chain;
    position = graph->chains[chain].length++;
    graph->chains[chain].tail = node;
    graph->node_count++;
    for (size_t i = 0; i < count; i++)
        graph->edges[graph->edge_count++] = (struct hb_edge){causes[i].node, node, causes[i].kind};
    if (position == 0)
        r = begin_chain(graph, chain, graph->lines[line].brief, causes, count);
    for (size_t i = 0; position && i < count && r == 0; i++)
        r = learn_from(graph, chain, position, causes[i].node);
    *ret_node = node;
    return r;
}

int hb_graph_end(struct hb_graph *graph, uint32_t number)
{
    struct line *line = &graph->lines[number];
    struct chain *chain;

    if (line->ended || line->chain == HB_NONE)
        return 0;
    line->ended = true;
    /* There may be a million lines, and as many chains, of a few nodes each. */
    chain = &graph->chains[line->chain];
    array_trim(&line->nodes, &line->capacity, line->count);
    array_trim(&chain->components, &chain->capacity, chain->count);
    if (graph->idle_count == MOST_IDLE_CHAINS) {
        memmove(graph->idle, graph->idle + 1, (MOST_IDLE_CHAINS - 1) * sizeof(*graph->idle));
        graph->idle_count--;
    }
    graph->idle[graph->idle_count++] = line->chain;
    return 0;
}

/* ------------------------------------------------------------------------------------------ questions */

bool hb_before(const struct hb_graph *graph, uint32_t a, uint32_t b)
{
    uint32_t chain_a = chain_of(graph, a), chain_b = chain_of(graph, b);
    uint32_t position_a = position_of(graph, a), position_b = position_of(graph, b);

    if (chain_a == chain_b)
        return position_a < position_b;
    return chain_knows(graph, chain_b, position_b, chain_a) > position_a;
}

uint32_t hb_known(const struct hb_graph *graph, uint32_t number, uint32_t node)
{
    const struct line *line = &graph->lines[number];
    uint32_t chain = chain_of(graph, node), position = position_of(graph, node), known;

    if (line->chain == HB_NONE)
        return 0;
    known = chain == line->chain ? position + 1 : chain_knows(graph, chain, position, line->chain);
    if (known <= line->first)
        return 0;
    known -= line->first;
    return known < line->count ? known : (uint32_t)line->count;
}

uint32_t hb_line_of(const struct hb_graph *graph, uint32_t node)
{
    return graph->places[node].line;
}

uint32_t hb_index_of(const struct hb_graph *graph, uint32_t node)
{
    return graph->places[node].index;
}

uint32_t hb_line_length(const struct hb_graph *graph, uint32_t line)
{
    return (uint32_t)graph->lines[line].count;
}

uint32_t hb_line_node(const struct hb_graph *graph, uint32_t line, uint32_t index)
{
    return graph->lines[line].nodes[index];
}

const struct hb_edge *hb_causes(const struct hb_graph *graph, uint32_t node, size_t *ret_count)
{
    size_t low = 0, high = graph->edge_count, end;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (graph->edges[middle].to < node)
            low = middle + 1;
        else
            high = middle;
    }
    for (end = low; end < graph->edge_count && graph->edges[end].to == node; end++)
        ;
    *ret_count = end - low;
    return graph->edges + low;
}

const struct hb_edge *hb_edges(const struct hb_graph *graph, size_t *ret_count)
{
    *ret_count = graph->edge_count;
    return graph->edges;
}

uint32_t hb_node_count(const struct hb_graph *graph)
{
    return (uint32_t)graph->node_count;
}

uint32_t hb_line_count(const struct hb_graph *graph)
{
    return (uint32_t)graph->line_count;
}

uint32_t hb_chain_count(const struct hb_graph *graph)
{
    return (uint32_t)graph->chain_count;
}
