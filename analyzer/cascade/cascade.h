/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Predicted slow-down cascades (PCatch: Li, Chen, Liu, Lu, Zhang, Gunawi, Gu, Lu and Li, EuroSys'18): which
 * loop, if the workload made it long, would delay the sink, a function whose time matters, of another job;
 * and over which locks, pools of threads and messages. Predicted from runs in which nothing of that happened.
 *
 * A report is a triplet of source, chain and sink. What is the same in several runs, or several times in one,
 * is one report: places are compared, not addresses.
 */
#ifndef TRACECTL_ANALYZER_CASCADE_CASCADE_H
#define TRACECTL_ANALYZER_CASCADE_CASCADE_H

#include "analyzer/cascade/loop_growth.h"
#include "analyzer/cascade/search.h"
#include "store/api/tracestore.h"

struct cascade_options {
    struct search_options search;
    bool origins;   /* source and sink must be of different jobs; false: an ablation of table 4 */
    bool loops;     /* sources must grow with the workload; false: an ablation, too */
    bool recognise; /* handlers of events that were not declared (event_loops.h) */
};

/* Where something happened. Strings are never NULL; "" and 0: not known. */
struct cascade_place {
    char *function, *file;
    int line;
    char *thread;  /* "P.T" */
    char *program; /* file name of its executable */
};

/* A link of a chain: at `waits` somebody has to wait for what happens from `delays` on. */
struct cascade_report_link {
    enum cascade_link_kind { CASCADE_LOCK, CASCADE_POOL, CASCADE_CAUSE } kind;
    enum hb_edge_kind edge; /* of a cause */
    uint64_t lock;          /* its address in one of the runs */
    struct cascade_place waits, delays;
};

enum cascade_severity { CASCADE_LOW, CASCADE_MEDIUM, CASCADE_HIGH };

struct cascade_report {
    char *key; /* what is the same for the same triplet */
    enum cascade_severity severity;
    struct cascade_place source; /* the loop; its function */
    char *step;                  /* what the loop calls */
    const struct loop_growth *growth;
    struct cascade_place sink;
    struct cascade_report_link links[SEARCH_MOST_LINKS]; /* from the source to the sink */
    size_t count;
    char *source_job, *sink_job; /* in words */
    uint64_t times;              /* found, over all runs */
    unsigned runs;               /* bit i: found in the i-th run */
};

/* What a run was like, and what of it is not known. */
struct cascade_run_facts {
    struct trace_parts parts;
    uint64_t events, nodes, edges, sections, chains;
    uint64_t sink_calls, sink_regions; /* of the sink; those in which something happened */
    uint64_t lost, unmatched;
    uint64_t processes_without_locks;
    bool calls_incomplete, search_complete;
    char *recognised; /* handlers that were not declared, with commas between them; NULL: none */
};

/* One test: a run, or several that recorded different processes of it at the same time. */
struct cascade_source {
    struct tracestore *store;
    struct trace_parts parts;
    uint64_t size; /* of the workload; 0: not known */
};

struct cascade_result {
    struct cascade_report *reports; /* the most severe ones first */
    size_t count, capacity;
    struct cascade_run_facts facts[GROWTH_MOST_RUNS];
    uint64_t sizes[GROWTH_MOST_RUNS];
    size_t runs;
    struct growth_table *growth;
};

/* Up to GROWTH_MOST_RUNS runs. -ENODATA: one has no sync events; -ENOENT: none calls the sink. Release in any
 * case. */
int cascades_find(const struct cascade_source *sources, size_t count, const char *sink,
                  const struct cascade_options *options, struct cascade_result *ret_result,
                  struct error *err);
void cascade_result_release(struct cascade_result *result);

/* "high", "medium", "low". */
const char *cascade_severity_name(enum cascade_severity severity);

#endif
