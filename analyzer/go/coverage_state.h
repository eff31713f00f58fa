/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The structures of coverage, shared by its files: coverage_model.c (usages and requirements),
 * coverage_tree.c (nodes), coverage_observer.c (what a process does), coverage.c (the rest). */
#ifndef TRACECTL_ANALYZER_GO_COVERAGE_STATE_H
#define TRACECTL_ANALYZER_GO_COVERAGE_STATE_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "analyzer/go/coverage.h"

/* A text that is kept once: equal texts have equal addresses. */
struct coverage_text {
    char *text;
    bool own_file; /* a source file of the program itself, as its model says */
    UT_hash_handle hh;
};

/* Without padding: it is hashed as bytes. */
struct usage_key {
    const char *file;
    int32_t line;
    uint32_t operation;
};

struct usage {
    struct go_covered_usage public; /* first: it is handed out */
    struct usage_key key;
    size_t part_capacity, node_capacity;
    UT_hash_handle hh;
};

struct node_key {
    const char *file;
    int32_t line;
    uint32_t parent;
};

struct node {
    struct go_coverage_node public;
    uint32_t number;
    struct node_key key;
    UT_hash_handle hh;
};

struct go_coverage {
    bool standard;
    struct coverage_text *texts;
    struct usage *usages;
    const struct go_covered_usage **sorted; /* NULL: to be made */
    size_t usage_count;
    struct node *nodes;
    struct node **node_list; /* by number */
    size_t node_count, node_capacity;
    char **runs;
    size_t run_count, run_capacity;
};

/* NULL: no memory. */
struct coverage_text *coverage_intern(struct go_coverage *coverage, const char *text);

/* -------------------------------------------------------------------- coverage_model.c */

/* Requirements that the parts of an operation have, as bits of enum go_requirement_kind; 0: no such usage. */
unsigned coverage_wanted(enum go_op operation, bool blocks);
/* NULL: there is none. `file` is an interned text. */
struct usage *usage_find(const struct go_coverage *coverage, const char *file, int line,
                         enum go_op operation);
/* Adds one that was not there. */
int usage_add(struct go_coverage *coverage, const char *file, int line, enum go_op operation, bool blocks,
              struct usage **ret_usage);
/* Makes sure that there are `count` parts. */
int usage_set_parts(struct go_coverage *coverage, struct usage *usage, size_t count);
void usages_free(struct go_coverage *coverage);

/* -------------------------------------------------------------------- coverage_tree.c */

/* The node of what `parent` (or GO_NO_NODE) makes at a place; of the main goroutine, or of one that nobody
 * was seen making, with `place` NULL. */
int node_get(struct go_coverage *coverage, uint32_t parent, const struct go_place *place, bool main,
             uint32_t *ret_node);
void nodes_free(struct go_coverage *coverage);

#endif
