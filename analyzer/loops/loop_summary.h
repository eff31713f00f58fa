/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The loop summaries of all threads of one run, or of runs that are compared: streams read from the store,
 * filtered, reduced by nested loop recognition with one loop table and one table of symbols.
 *
 * Always all threads are read, also when only one is asked for: what a loop is called, and which loops two
 * repetitions make, depends on all of them.
 */
#ifndef TRACECTL_ANALYZER_LOOPS_LOOP_SUMMARY_H
#define TRACECTL_ANALYZER_LOOPS_LOOP_SUMMARY_H

#include "analyzer/loops/nlr.h"
#include "analyzer/symbols/filter.h"
#include "analyzer/symbols/symbols.h"
#include "store/api/tracestore.h"

struct error;

enum last_call {
    LAST_CALL_RETURNED, /* or there is none */
    LAST_CALL_OPEN,     /* the thread ended, or was last seen, inside its last call */
    LAST_CALL_UNKNOWN,  /* a call without a return whose return nobody would have seen */
};

/* Events missing at one place, or at several without a kept event between them. The i-th lost element of a
 * sequence belongs to the i-th gap. */
struct loop_gap {
    uint64_t events; /* 0: unknown */
    char cause[64];
};

struct thread_loops {
    char *label;   /* "P.T" */
    char *key;     /* threads of one key are the same one in several runs (thread_match.h); NULL: the label */
    bool has_rank; /* its process has an MPI rank; known when there are several runs */
    uint64_t events, kept;
    struct nlr_sequence loops;
    enum last_call last_call; /* of the calls kept by the filter */
    bool incomplete;          /* events are missing at unknown places */
    struct loop_gap *gaps;
    size_t gap_count, gap_capacity;
};

static inline const char *thread_key(const struct thread_loops *thread)
{
    return thread->key ? thread->key : thread->label;
}

/* A function that was not observed all the time. When runs are compared it is left out of all. */
struct blind_function {
    char *name, *cause;     /* the catalog's name */
    int64_t from_ns, to_ns; /* to_ns 0: to the end of the run */
};

/* Events that are missing, no one knows where. */
struct unplaced_loss {
    char *thread; /* label, "" when unknown too */
    char *cause;
    uint64_t events; /* 0: unknown */
};

struct run_loops {
    int64_t run_id;
    bool unfinished;              /* as in struct tracestore_run */
    bool incomplete;              /* has an unplaced loss of no known thread */
    struct thread_loops *threads; /* in order of their keys, numerically */
    size_t thread_count;
    struct blind_function *blind;
    size_t blind_count, blind_capacity;
    struct unplaced_loss *losses;
    size_t loss_count, loss_capacity;
};

struct loop_source {
    struct tracestore *store;
    const struct tracestore_run *run;
};

struct loop_options {
    const struct filter *filter;
    bool with_returns;    /* in addition to what the filter says */
    uint32_t max_body;    /* K */
    uint32_t min_repeats; /* 0: three equal blocks make a loop, two when the body is known; else that many */
    unsigned workers;     /* threads that read streams; 0: as many as are worth it. The result is the same. Of
                             several sets of options the first one's counts. */
};

struct loop_summary {
    struct symbol_table symbols;
    struct loop_table table;
    struct run_loops *runs; /* of a comparison: the normal ones, the faulty one last */
    size_t run_count;
};

/* Reads the threads of one run or more. Release what a success returned. Memory is bounded by the summaries.
 */
int loop_summary_read(const struct loop_source *sources, size_t runs, const struct loop_options *options,
                      struct loop_summary *ret_summary, struct error *err);

/* A summary for each of `count` sets of options, and every stream decoded only once for all of them. */
int loop_summary_read_each(const struct loop_source *sources, size_t runs, const struct loop_options *options,
                           size_t count, struct loop_summary *ret_summaries, struct error *err);
void loop_summary_release(struct loop_summary *summary);

/* Whether the filter keeps nothing of what was recorded: not a result, but a filter that does not fit. */
bool loop_summary_keeps_nothing(const struct loop_summary *summary);

/* Compares labels as people read them: 2.0 before 10.0. */
int thread_label_compare(const char *a, const char *b);

#endif
