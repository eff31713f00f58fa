/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which loops take longer when the workload grows (PCatch, section 6). The paper decides that by analysing
 * the whole program; here it is measured, over runs of different sizes.
 *
 * A loop that always has as many iterations, however large the workload, is bounded: no source of a cascade.
 * Of the others there are the paper's three kinds: those that only wait until another thread acts; those that
 * end when what was read says so; and those whose count follows the workload. Sizes, where they are known,
 * are fitted: the function c * f(size) that comes nearest to the counts, f being constant, logarithmic,
 * linear, linear times logarithmic, or quadratic. One run alone cannot show growth: then a loop of the third
 * kind is only possible.
 */
#ifndef TRACECTL_ANALYZER_CASCADE_LOOP_GROWTH_H
#define TRACECTL_ANALYZER_CASCADE_LOOP_GROWTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GROWTH_MOST_RUNS = 8 };

enum loop_kind {
    LOOP_BOUNDED,     /* as many iterations in all runs, or no more with a larger workload */
    LOOP_WAITS = 1,   /* ends when another thread acts */
    LOOP_READS = 2,   /* ends when what was read says so */
    LOOP_FOLLOWS = 3, /* its count follows the workload */
};

/* "bounded", "waits", "reads", "follows". */
const char *loop_kind_name(enum loop_kind kind);

enum loop_fit { FIT_UNKNOWN, FIT_CONSTANT, FIT_LOGARITHMIC, FIT_LINEAR, FIT_LINEAR_LOG, FIT_QUADRATIC };

/* "logarithmic"...; "unknown". */
const char *loop_fit_name(enum loop_fit fit);

/* A loop in all runs. */
struct loop_growth {
    char *function, *step;             /* names that are the same in all runs */
    uint64_t counts[GROWTH_MOST_RUNS]; /* most iterations in one call of the function; 0: it was not called */
    uint64_t fewest;                   /* over all runs and calls */
    bool only_waits, ends_on_read;     /* in some call; see struct timed_loop */
    enum loop_kind kind;
    bool possible; /* the kind is not certain: there is one run only */
    enum loop_fit fit;
    double fit_error; /* mean relative distance of the counts from the fit */
};

struct growth_table;

/* For `runs` runs (up to GROWTH_MOST_RUNS) with these sizes, 0: not known. -ENOMEM. Free with
 * growth_table_free, which accepts NULL. */
int growth_table_new(size_t runs, const uint64_t *sizes, struct growth_table **ret_table);
void growth_table_free(struct growth_table *table);

/* In `run` a call of the function took that many steps. -ENOMEM. */
int growth_table_add(struct growth_table *table, size_t run, const char *function, const char *step,
                     uint64_t iterations, bool only_waits, bool ends_on_read);

/* Judges all loops: call it when all have been added. */
void growth_table_judge(struct growth_table *table);

/* NULL: there is no such loop. */
const struct loop_growth *growth_table_find(const struct growth_table *table, const char *function,
                                            const char *step);

#endif
