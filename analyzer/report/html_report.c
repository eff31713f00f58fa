/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/report/html_report.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "analyzer/diff/compare_rank.h"
#include "analyzer/picture/markup.h"
#include "analyzer/report/parts.h"
#include "analyzer/report/style_css.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

static int report_glossary(struct report *report, struct error *err);
static int report_goroutines(struct report *report, struct error *err);

static const struct section {
    const char *id, *title;
    int (*write)(struct report *report, struct error *err);
    bool compares; /* only of two runs and more */
} sections[] = {
    {"summary", "What happened", report_summary, true},
    {"facts", "The runs", report_facts, false},
    {"losses", "What was not recorded", report_losses, false},
    {"progress", "Where the threads were at the end", report_progress, false},
    {"goroutines", "Goroutines", report_goroutines, false},
    {"ranking", "Which threads changed most", report_ranking, true},
    {"differences", "How they changed (diffNLR)", report_differences, true},
    {"similarity", "Thread similarity", report_matrices, false},
    {"clusters", "Thread clusters", report_clusters, false},
    {"lattice", "Shared behaviour (concept lattice)", report_lattices, false},
    {"loops", "Loops", report_loops, false},
    {"glossary", "How to read this page", report_glossary, false},
};

/* ------------------------------------------------------------------------------------------ glossary */

static const struct term {
    const char *term, *meaning;
    bool compares;
} terms[] = {
    {"Thread P.T", "Thread T of process P: 0 is the main thread; P is the MPI rank if there is one.", false},
    {"Loop summary (NLR)",
     "A thread's calls, with repetitions folded into loops: L0 ^ 16 is loop L0, 16 times.", false},
    {"K", "The longest loop body to recognise, in entries.", false},
    {"Attributes",
     "Compared parts of a thread's summary: single entries (sing) or pairs of neighbours (doub), with "
     "their frequency (actual), its order of magnitude (log10), or neither (noFreq).",
     false},
    {"JSM",
     "Jaccard similarity matrix: the share of attributes that two threads have in common, from 0 to 1.",
     false},
    {"JSM_D", "The difference of each similarity between the runs.", true},
    {"Linkage",
     "The rule that derives the distance of two groups of threads from the distances of "
     "their threads.",
     false},
    {"B-score",
     "Fowlkes-Mallows similarity of the two runs' clusterings, over all numbers of clusters: low if the "
     "fault changed which threads are similar.",
     true},
    {"Consensus",
     "Each combination of filter, attributes, K and linkage votes for the threads that changed, with a "
     "high weight if few of them stand out.",
     true},
    {"diffNLR",
     "The shortest edit from a thread's loop summary in the baseline run to that in the "
     "candidate run.",
     true},
};

static int report_glossary(struct report *report, struct error *err)
{
    fputs("<dl>\n", report->out);
    for (size_t i = 0; i < ARRAY_SIZE(terms); i++) {
        if (terms[i].compares && !report_compares(report))
            continue;
        fputs("<dt>", report->out);
        markup_escape(report->out, terms[i].term);
        fputs("</dt>\n<dd>", report->out);
        markup_escape(report->out, terms[i].meaning);
        fputs("</dd>\n", report->out);
    }
    fputs("</dl>\n", report->out);
    html_paragraph(report->out, "note",
                   "The methods are those of DiffTrace (S. Taheri and others, IEEE CLUSTER 2019). Made by "
                   "tracectl %s.",
                   TRACECTL_VERSION);
    return 0;
}

static int report_goroutines(struct report *report, struct error *err)
{
    return report->input->write_goroutines(report->input->context, report->out, err);
}

/* ------------------------------------------------------------------------------------------ the page */

static char *page_title(const struct report *report)
{
    const char *first = report_run(report, 0)->name;
    const char *last = report_run(report, report->input->run_count - 1)->name;
    char *title = NULL;

    if (asprintf(&title, report_compares(report) ? "%s and %s, compared" : "%s", first, last) < 0)
        return NULL;
    return title;
}

static bool applies(const struct report *report, const struct section *section)
{
    if (section->write == report_goroutines && !report->input->write_goroutines)
        return false;
    if (section->write == report_progress && !report->input->order)
        return false;
    return report_compares(report) || !section->compares;
}

static void print_contents(struct report *report)
{
    fputs("<nav aria-labelledby=\"contents\">\n<h2 id=\"contents\">Contents</h2>\n<ol>\n", report->out);
    for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
        if (applies(report, &sections[i]))
            fprintf(report->out, "<li><a href=\"#%s\">%s</a></li>\n", sections[i].id, sections[i].title);
    fputs("</ol>\n</nav>\n", report->out);
}

static void print_head(struct report *report, const char *title)
{
    html_begin(report->out, title, style_css);
    fputs("<header>\n<h1>", report->out);
    markup_escape(report->out, title);
    fputs("</h1>\n", report->out);
    if (report_compares(report))
        html_paragraph(report->out, "subtitle",
                       "Function call traces: %s is the baseline, %s the run under test.",
                       report_run(report, 0)->name, report_run(report, report->input->run_count - 1)->name);
    else
        html_paragraph(report->out, "subtitle", "A function call trace: %s", report_run(report, 0)->command);
    fputs("</header>\n", report->out);
    print_contents(report);
    fputs("<main>\n", report->out);
}

static int print_sections(struct report *report, struct error *err)
{
    int r = 0;

    for (size_t i = 0; i < ARRAY_SIZE(sections) && r == 0; i++) {
        if (!applies(report, &sections[i]))
            continue;
        html_section_begin(report->out, sections[i].id, sections[i].title);
        r = sections[i].write(report, err);
        html_section_end(report->out);
    }
    fputs("</main>\n", report->out);
    html_end(report->out);
    return r < 0 ? r : 0;
}

static void release(struct report *report)
{
    diff_verdict_release(&report->verdict);
    function_facts_release(&report->facts);
    run_comparison_release(&report->comparison);
    report_objects_release(&report->objects);
    free(report->mentioned);
}

static int compare(struct report *report, struct error *err)
{
    const struct html_report *input = report->input;
    int r;

    if (compare_runs(input->summary, &report->comparison) < 0)
        return error_no_memory(err);
    run_comparison_rank(&report->comparison, input->ranking, input->run_count - 1);
    r = function_facts_read(input->summary, &input->sources[0], &input->sources[input->run_count - 1],
                            &report->facts, err);
    if (r < 0)
        return r;
    if (diff_verdict_make(input->summary, &report->comparison, &report->facts, &report->verdict) < 0)
        return error_no_memory(err);
    return 0;
}

int html_report_write(const struct html_report *input, FILE *out, struct error *err)
{
    CLEANUP(release) struct report report = {.input = input, .out = out};
    AUTO_FREE char *title = page_title(&report);
    int r = title ? report_objects_make(input, &report.objects) : -ENOMEM;

    if (r < 0)
        return error_set(err, r, NULL, "comparing the threads of the report");
    report.mentioned = calloc(input->summary->table.number_count + 1, sizeof(*report.mentioned));
    if (!report.mentioned)
        return error_no_memory(err);
    if (report_compares(&report))
        r = compare(&report, err);
    if (r < 0)
        return r;
    print_head(&report, title);
    return print_sections(&report, err);
}
