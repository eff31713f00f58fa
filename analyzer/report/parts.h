/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the sections of a report share: parts of html_report.c. */
#ifndef TRACECTL_ANALYZER_REPORT_PARTS_H
#define TRACECTL_ANALYZER_REPORT_PARTS_H

#include "analyzer/diff/verdict.h"
#include "analyzer/report/html.h"
#include "analyzer/report/html_report.h"
#include "analyzer/report/report_objects.h"

struct report {
    const struct html_report *input;
    FILE *out;
    struct report_objects objects;
    /* Of two runs and more: the first normal one and the faulty one. */
    struct run_comparison comparison;
    struct function_facts facts;
    struct diff_verdict verdict;
    bool *mentioned; /* by loop number: differences show it, so that the loop table must */
};

static inline bool report_compares(const struct report *report)
{
    return report->input->run_count > 1;
}

static inline const struct tracestore_run *report_run(const struct report *report, size_t run)
{
    return report->input->sources[run].run;
}

/* The sections. Each fails with -ENOMEM or what it met, and then says so in `err`. */
int report_summary(struct report *report, struct error *err);
int report_facts(struct report *report, struct error *err);
int report_losses(struct report *report, struct error *err);
int report_progress(struct report *report, struct error *err);
int report_ranking(struct report *report, struct error *err);
int report_matrices(struct report *report, struct error *err);
int report_clusters(struct report *report, struct error *err);
int report_lattices(struct report *report, struct error *err);
int report_differences(struct report *report, struct error *err);
int report_loops(struct report *report, struct error *err);

#endif
