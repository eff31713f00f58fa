/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How much of what goroutines can do to each other has been seen: GoAT's coverage (Taheri and Gopalakrishnan,
 * IISWC 2021; Taheri's dissertation, 2022, sections 4.3.3 and 4.3.5.2). The concurrency-usage model of a
 * program gives requirements, what its goroutines do in a run covers them:
 *
 *     send, receive, range    blocked, unblocking, nop       Req1
 *     select, each case       the same                       Req2
 *     select with a default,
 *     each case               blocked, unblocking            as in table 4.3: see docs/go.md
 *     lock, rlock             blocked, blocking              Req3
 *     trylock, tryrlock       blocking                       (they never stop)
 *     close, unlock, runlock, signal, broadcast, done        Req4: unblocking, nop
 *     go                      covered                        Req5
 *
 * "Blocked": the operation had to wait; "unblocking": it let another goroutine continue; "blocking": while its
 * goroutine held the lock that it took, another one had to wait for it; "nop": none of these.
 *
 * Who has covered a requirement is a node of the global goroutine tree: goroutines of different runs are the
 * same node when their parents are and when they were made at the same place (equation 4.1). One that was
 * made at the same place as one of its ancestors is in that one's node; else a goroutine that makes its own
 * successor would make a node each time.
 */
#ifndef TRACECTL_ANALYZER_GO_COVERAGE_H
#define TRACECTL_ANALYZER_GO_COVERAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/go/places.h"
#include "analyzer/go/replay.h"
#include "store/streams/go_events.h"

struct error;

enum go_requirement_kind {
    GO_REQUIRE_BLOCKED,
    GO_REQUIRE_UNBLOCKING,
    GO_REQUIRE_BLOCKING,
    GO_REQUIRE_NOP, /* of a go statement: that it was met at all */
    GO_REQUIREMENT_KINDS,
};

struct go_cover {
    uint32_t run, node;
};

struct go_requirement {
    bool wanted;             /* false: there is no such requirement here */
    struct go_cover *covers; /* who has covered it: each pair once, by run */
    size_t cover_count, cover_capacity;
};

/* What requirements are about: the operation, or one case of a select. */
struct go_usage_part {
    int line; /* of a case; 0: not known */
    bool send;
    struct go_requirement requirements[GO_REQUIREMENT_KINDS];
};

struct go_covered_usage {
    const char *file;
    int line;
    enum go_op operation;
    bool blocks;   /* of a select: it has no default */
    bool in_model; /* false: it was only met at run time */
    struct go_usage_part *parts;
    size_t part_count;
    uint32_t *nodes; /* that have met it */
    size_t node_count;
};

struct go_coverage_node {
    uint32_t parent;  /* GO_NO_NODE: of the main goroutine, and of those that nobody was seen making */
    const char *file; /* where it was made; NULL: not known */
    int line;
    const char *function; /* that made it; NULL: not known */
    bool main;
};
#define GO_NO_NODE UINT32_MAX

struct go_coverage_count {
    size_t covered, total;
};

struct go_coverage;

/* `standard`: the usages of the standard library count, too. */
int go_coverage_new(bool standard, struct go_coverage **ret_coverage);
void go_coverage_free(struct go_coverage *coverage);

/* Adds the requirements of a program's model. What is known already (file, line and operation) stays as it
 * is, so a program's model may be added for each of its runs. -ENOMEM. */
int go_coverage_add_model(struct go_coverage *coverage, const struct go_usage_row *rows, size_t count);

/* Adds a run without anything covered; its number, from 0. -ENOMEM. */
int go_coverage_add_run(struct go_coverage *coverage, const char *name, uint32_t *ret_run);

/* What one process of a run does. go_coverage_observer_event is given every event behind the replay that was
 * fed it, go_coverage_observer_action every action that this replay reports (its on_action). Both fail with
 * -ENOMEM, or with what `places` says. The places are kept until the observer is freed. */
struct go_coverage_observer;
int go_coverage_observer_new(struct go_coverage *coverage, uint32_t run, struct go_place_source places,
                             struct go_coverage_observer **ret_observer);
void go_coverage_observer_free(struct go_coverage_observer *observer);
int go_coverage_observer_event(struct go_coverage_observer *observer, const struct go_replay *replay,
                               const struct process_event *event);
int go_coverage_observer_action(struct go_coverage_observer *observer, const struct go_goroutine *goroutine,
                                const struct go_action *action);

/* All of this for a run in a store: its programs' models, and its events through a replay. */
int go_coverage_read_run(struct go_coverage *coverage, struct tracestore *store,
                         const struct tracestore_run *run, struct error *err);

/* ------------------------------------------------------------------------------------------ asking */

/* Usages with requirements, by file, line and operation. Valid until something is added or observed. */
size_t go_coverage_usages(struct go_coverage *coverage, const struct go_covered_usage *const **ret_usages);

size_t go_coverage_run_count(const struct go_coverage *coverage);
const char *go_coverage_run_name(const struct go_coverage *coverage, uint32_t run);
size_t go_coverage_node_count(const struct go_coverage *coverage);
/* Nodes are numbered in the order in which they were met; a parent comes before its children. */
struct go_coverage_node go_coverage_node(const struct go_coverage *coverage, uint32_t node);

/* Requirements covered by any run and node; by one run; and by one node, of those that it has met. */
struct go_coverage_count go_coverage_total(const struct go_coverage *coverage);
struct go_coverage_count go_coverage_of_run(const struct go_coverage *coverage, uint32_t run);
struct go_coverage_count go_coverage_of_node(const struct go_coverage *coverage, uint32_t node);
/* 100 for nothing to cover. */
double go_coverage_percent(struct go_coverage_count count);

/* How many requirements of a place are not covered: where to explore next. 0 also for unknown places. */
size_t go_coverage_open(const struct go_coverage *coverage, const char *file, int line, enum go_op operation);

/* "blocked", "unblocking", "blocking", "no_op", or "covered" of a go statement. */
const char *go_requirement_name(enum go_op operation, enum go_requirement_kind kind);
/* Whether `run` has covered it; GO_ANY_RUN: whether any has. */
bool go_requirement_covered(const struct go_requirement *requirement, uint32_t run);
#define GO_ANY_RUN UINT32_MAX

#endif
