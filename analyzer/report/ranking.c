/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The summary in plain words, and which threads changed most. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/picture/folded_names.h"
#include "analyzer/report/parts.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

enum { MOST_RANKED = 25, MOST_ROWS = 30, MOST_RANGES = 6, MOST_UNRANKED = 12 };

/* ------------------------------------------------------------------------------------------ in words */

int report_summary(struct report *report, struct error *err)
{
    size_t last = report->input->run_count - 1;
    AUTO_FREE char *text =
        diff_verdict_text(&report->verdict, report_run(report, 0)->name, report_run(report, last)->name);
    char *rest = text;

    if (!text)
        return error_no_memory(err);
    fputs("<div class=\"summary\">\n", report->out);
    for (const char *line; (line = strsep(&rest, "\n"));)
        if (*line)
            html_paragraph(report->out, *line == ' ' ? "indent" : NULL, "%s", line + strspn(line, " "));
    fputs("</div>\n", report->out);
    return 0;
}

/* ------------------------------------------------------------------------------------------ consensus */

/* Of threads that changed no more than normal runs vary, or not at all, nobody asks for the order. */
static bool same_rank(const struct ranked *a, const struct ranked *b)
{
    if (a->score <= 0 && b->score <= 0)
        return true;
    return a->score == b->score && a->change == b->change && a->own == b->own;
}

/* A row for the threads from `at` on that have equal ranks; returns how many they are, or -ENOMEM. */
static long print_ranked(struct report *report, struct html_table *table, size_t at)
{
    const struct ranking_objects *threads = &report->input->ranking->threads;
    const struct ranked *ranked = &threads->consensus[at];
    AUTO_FREE uint32_t *objects = calloc(threads->count, sizeof(*objects));
    AUTO_FREE char *names = NULL;
    double change = 0, own = 0;
    const char *most;
    size_t count = 0;

    if (!objects)
        return -ENOMEM;
    for (; at + count < threads->count && same_rank(&ranked[count], ranked); count++) {
        objects[count] = ranked[count].object;
        change = fmax(change, ranked[count].change);
        own = fmax(own, ranked[count].own);
    }
    folded_sort(objects, count);
    names = folded_ranges((const char *const *)threads->labels, objects, count, MOST_RANGES);
    if (!names)
        return -ENOMEM;
    most = ranked->score <= 0 && count > 1 ? "up to " : "";
    table->row_class = at < report->input->suspects ? "suspect" : NULL;
    html_cell_format(table, "%s%s", at < report->input->suspects ? "\xe2\x96\xb6 " : "", names);
    html_cell_share(table, ranked->score);
    html_cell_format(table, "%s%.3f", most, change);
    html_cell_format(table, "%s%.3f", most, own);
    return (long)count;
}

static int print_consensus(struct report *report, struct error *err)
{
    static const char *const titles[] = {"Threads", ">Score", ">Stands out", ">Own calls changed"};
    size_t count = report->input->ranking->threads.count, rows = 0, at = 0;
    struct html_table table;

    html_table_begin(&table, report->out, "Consensus: threads, the most changed first", titles,
                     ARRAY_SIZE(titles));
    while (at < count && rows++ < MOST_RANKED) {
        long printed = print_ranked(report, &table, at);

        if (printed < 0)
            return error_no_memory(err);
        at += (size_t)printed;
    }
    html_table_end(&table);
    if (at < count)
        html_paragraph(report->out, "note", "Omitted: %zu threads with lower scores.", count - at);
    return 0;
}

static void print_suspects(struct report *report)
{
    size_t suspects = report->input->suspects, normals = report->input->run_count - 1;

    if (!suspects)
        html_paragraph(report->out, NULL, "No thread stands out%s.",
                       normals > 1 ? " more than between the baseline runs" : "");
    else
        html_paragraph(report->out, NULL,
                       "%zu of %zu threads stand%s out, marked \xe2\x96\xb6. The score is the consensus "
                       "of all parameter combinations below.",
                       suspects, report->input->ranking->threads.count, suspects == 1 ? "s" : "");
    if (normals == 1)
        html_paragraph(report->out, "note",
                       "Only one baseline run, so normal run-to-run variation is included; more of "
                       "them (--baseline) make the ranking more reliable.");
}

/* ------------------------------------------------------------------------------------------ not ranked */

static const char *const reasons[] = {
    [UNRANKED_ONLY_NORMAL] = "only in the baseline run",
    [UNRANKED_ONLY_FAULTY] = "only in the candidate run",
    [UNRANKED_VARIES] = "not in all baseline runs",
    [UNRANKED_UNKNOWN] = "not ranked because events are missing",
    [UNRANKED_NO_RANK] = "not ranked because they only launch the others",
};

static int print_unranked(struct report *report, enum unranked_why why, struct error *err)
{
    const struct ranking *ranking = report->input->ranking;
    AUTO_FREE char *names = NULL;
    size_t size = 0, count = 0;
    FILE *out = open_memstream(&names, &size);

    if (!out)
        return error_no_memory(err);
    for (size_t i = 0; i < ranking->unranked_count; i++)
        if (ranking->unranked[i].why == why && count++ < MOST_UNRANKED)
            fprintf(out, "%s%s", count > 1 ? ", " : "", ranking->unranked[i].label);
    if (count > MOST_UNRANKED)
        fprintf(out, " and %zu more", count - MOST_UNRANKED);
    if (fclose(out))
        return error_no_memory(err);
    if (count)
        html_paragraph(report->out, NULL, "Threads %s: %s.", reasons[why], names);
    return 0;
}

/* ------------------------------------------------------------------------------------------ combinations */

static void print_objects(struct html_table *table, const struct ranking_objects *objects,
                          const uint32_t *which, size_t count)
{
    AUTO_FREE uint32_t *sorted = calloc(count + 1, sizeof(*sorted));
    AUTO_FREE char *names = NULL;

    if (sorted && count) {
        memcpy(sorted, which, count * sizeof(*sorted));
        folded_sort(sorted, count);
        names = folded_ranges((const char *const *)objects->labels, sorted, count, MOST_RANGES);
    }
    html_cell(table, names ? names : "none");
}

static void print_row(struct html_table *table, const struct html_report *input,
                      const struct ranking_row *row)
{
    const struct ranking_view *view = &input->views[row->view];

    table->row_class = row == input->shown_row ? "shown" : NULL;
    html_cell_format(table, "%s%s", view->filter, row == input->shown_row ? " \xe2\x97\x86" : "");
    html_cell(table, attribute_kind_name(row->attributes));
    html_cell_count(table, view->max_body);
    html_cell(table, linkage_name(row->linkage));
    html_cell_format(table, "%.3f", row->b_score);
    html_cell_format(table, "%.3f", row->confidence);
    print_objects(table, &input->ranking->processes, row->processes, row->process_count);
    print_objects(table, &input->ranking->threads, row->threads, row->thread_count);
}

/* The first rows, and the one that the pictures show. */
static void print_rows(struct report *report)
{
    static const char *const titles[] = {"Filter",   "Attributes",  ">K",        "Linkage",
                                         ">B-score", ">Confidence", "Processes", "Threads"};
    const struct ranking *ranking = report->input->ranking;
    size_t printed = 0;
    struct html_table table;

    html_table_begin(&table, report->out,
                     "Combinations, lowest B-score first: there the fault changed thread similarity "
                     "most. \xe2\x97\x86 marks the one shown in the pictures of this page",
                     titles, ARRAY_SIZE(titles));
    for (size_t i = 0; i < ranking->row_count; i++) {
        if (i >= MOST_ROWS && &ranking->rows[i] != report->input->shown_row)
            continue;
        print_row(&table, report->input, &ranking->rows[i]);
        printed++;
    }
    html_table_end(&table);
    if (printed < ranking->row_count)
        html_paragraph(report->out, "note", "Omitted: %zu combinations (tracectl rank --most 0 lists all).",
                       ranking->row_count - printed);
}

int report_ranking(struct report *report, struct error *err)
{
    int r;

    print_suspects(report);
    r = print_consensus(report, err);
    for (size_t why = 0; why < ARRAY_SIZE(reasons) && r == 0; why++)
        r = print_unranked(report, (enum unranked_why)why, err);
    html_subheading(report->out, "Combinations of filter, attributes and linkage");
    print_rows(report);
    return r;
}
