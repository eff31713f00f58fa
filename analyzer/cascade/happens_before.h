/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The must-happen-before graph: which operation cannot have begun before which other one was over (Lamport,
 * CACM 1978; the rules of section 2.1 of PCatch, EuroSys'18, are in causes.h).
 *
 * A node is an operation of a line: a thread, or one execution of an event's handler, whose operations happen
 * one after the other. A cause is an earlier node, usually of another line. Whether one node is before
 * another one is answered from chain clocks (Raychev, Vechev and Sridharan, "Effective race detection for
 * event-driven programs", OOPSLA 2013): lines are put one behind the other into chains where the one is over
 * before the other begins, and for each pair of chains there is a list of steps, "from this position on, so
 * much of the other chain is known". A query is one binary search; a cause that says nothing new costs
 * nothing.
 *
 * Nodes are added causes first, as they happened; there is no way to make a circle.
 */
#ifndef TRACECTL_ANALYZER_CASCADE_HAPPENS_BEFORE_H
#define TRACECTL_ANALYZER_CASCADE_HAPPENS_BEFORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HB_NONE UINT32_MAX /* no node, no line */

enum hb_edge_kind {
    HB_CREATE,  /* a thread or process is made; it begins */
    HB_JOIN,    /* it ends; somebody waits for that */
    HB_SIGNAL,  /* a condition is signalled; the wait ends */
    HB_POST,    /* a semaphore is posted; the wait ends */
    HB_BARRIER, /* the last one arrives; all continue */
    HB_MESSAGE, /* bytes are sent; they are received */
    HB_ENQUEUE, /* an event is put into a queue; its handler begins */
    HB_FIFO,    /* the handler of an event that was queued before begins */
    HB_INSIDE,  /* a thread begins, and then its handlers; they are over, and it ends */
    HB_EDGE_KINDS,
};

/* "create", "message"...; and what the later one waits for, as people say it: "the message". */
const char *hb_edge_name(enum hb_edge_kind kind);
const char *hb_edge_words(enum hb_edge_kind kind);

struct hb_edge {
    uint32_t from, to; /* nodes */
    enum hb_edge_kind kind;
};

struct hb_cause {
    uint32_t node;
    enum hb_edge_kind kind;
};

struct hb_graph;

/* -ENOMEM. Free with hb_graph_free, which accepts NULL. */
int hb_graph_new(struct hb_graph **ret_graph);
void hb_graph_free(struct hb_graph *graph);

/* A new line; lines are numbered from 0. `brief`: it will be one of very many, and short; what it knows is
 * not copied then. -ENOMEM, -EOVERFLOW (2^32 lines). */
int hb_graph_line(struct hb_graph *graph, bool brief, uint32_t *ret_line);

/* Appends a node to the line; nodes are numbered from 0. -EINVAL: a cause is no node yet, or the line has
 * ended. -ENOMEM, -EOVERFLOW; then the graph is good for hb_graph_free only. */
int hb_graph_add(struct hb_graph *graph, uint32_t line, const struct hb_cause *causes, size_t count,
                 uint32_t *ret_node);

/* Nothing more comes to the line. What is known of that lets later lines share its chain. -ENOMEM. */
int hb_graph_end(struct hb_graph *graph, uint32_t line);

/* Whether `a` must be over before `b` can begin; false when they are the same. */
bool hb_before(const struct hb_graph *graph, uint32_t a, uint32_t b);

static inline bool hb_concurrent(const struct hb_graph *graph, uint32_t a, uint32_t b)
{
    return a != b && !hb_before(graph, a, b) && !hb_before(graph, b, a);
}

/* How many nodes of the line, from its first on, are before `node` or are it. */
uint32_t hb_known(const struct hb_graph *graph, uint32_t line, uint32_t node);

/* Where a node is: the line, and how many of it are before it; and back. */
uint32_t hb_line_of(const struct hb_graph *graph, uint32_t node);
uint32_t hb_index_of(const struct hb_graph *graph, uint32_t node);
uint32_t hb_line_length(const struct hb_graph *graph, uint32_t line);
uint32_t hb_line_node(const struct hb_graph *graph, uint32_t line, uint32_t index);

/* The causes of a node, as edges, valid until the next one is added. */
const struct hb_edge *hb_causes(const struct hb_graph *graph, uint32_t node, size_t *ret_count);

/* All edges, by their `to`; and how much there is of everything. */
const struct hb_edge *hb_edges(const struct hb_graph *graph, size_t *ret_count);
uint32_t hb_node_count(const struct hb_graph *graph);
uint32_t hb_line_count(const struct hb_graph *graph);
uint32_t hb_chain_count(const struct hb_graph *graph);

#endif
