/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How similar threads are to each other, and which belong together. */
#include <errno.h>
#include <stdlib.h>

#include "analyzer/cluster/b_score.h"
#include "analyzer/picture/dendrogram_picture.h"
#include "analyzer/picture/folded_names.h"
#include "analyzer/picture/heat_map.h"
#include "analyzer/ranking/ranking_votes.h"
#include "analyzer/report/parts.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

enum { MOST_ROWS = 120, MOST_LEAVES = 60, MOST_CLUSTERED = 12000, MOST_FOLDED = 40, MOST_RANGES = 40 };

/* ------------------------------------------------------------------------------------------ heat maps */

/* The rows that all matrices of a page show. */
struct rows {
    size_t *groups, count;
};

static int print_matrix(struct report *report, const struct rows *rows, const struct similarity *values,
                        enum heat_scale scale, const char *title, const char *caption, struct error *err)
{
    const struct report_objects *objects = &report->objects;
    struct heat_map map = {
        .values = values,
        .scale = scale,
        .names = (const char *const *)objects->group_names,
        .marked = objects->group_suspect,
        .rows = rows->groups,
        .row_count = rows->count,
        .title = title,
        .description =
            "One row and column for each thread or group of similar threads. The colour of a cell shows "
            "the value for the two threads; see the scale on the right.",
    };
    AUTO_FREE char *svg = heat_map_svg(&map);

    if (!svg)
        return error_no_memory(err);
    html_figure(report->out, svg, "%s. %s", title, caption);
    return 0;
}

/* What the rows are that stand for three threads or more. */
static int explain_folded(struct report *report, struct error *err)
{
    static const char *const titles[] = {"Row", ">Threads", "Which"};
    const struct report_objects *objects = &report->objects;
    size_t folded = 0, printed = 0;
    struct html_table table;

    for (size_t group = 0; group < objects->group_count; group++)
        folded += objects->first[group + 1] - objects->first[group] > 2;
    if (!folded)
        return 0;
    html_table_begin(&table, report->out, "Similar threads that share a row", titles, ARRAY_SIZE(titles));
    for (size_t group = 0; group < objects->group_count && printed < MOST_FOLDED; group++) {
        const uint32_t *threads = objects->threads + objects->first[group];
        size_t count = objects->first[group + 1] - objects->first[group];
        AUTO_FREE char *ranges = NULL;

        if (count <= 2)
            continue;
        ranges = folded_ranges((const char *const *)objects->names, threads, count, MOST_RANGES);
        if (!ranges)
            return error_no_memory(err);
        html_cell(&table, objects->group_names[group]);
        html_cell_count(&table, count);
        html_cell(&table, ranges);
        printed++;
    }
    html_table_end(&table);
    if (printed < folded)
        html_paragraph(report->out, "note", "Omitted: %zu more rows of several threads.", folded - printed);
    return 0;
}

static void print_parameters(struct report *report)
{
    const struct html_report *input = report->input;

    html_paragraph(
        report->out, NULL,
        "The similarity of two threads is the number of attributes that both have, divided by the "
        "number that at least one has: 1 if they did the same, 0 if they have nothing in common. Filter "
        "%s, attributes %s, K = %u.",
        input->filter ? input->filter : "everything", attribute_kind_name(input->attributes),
        input->max_body);
}

/* JSM_D, as the ranking has it. */
static int make_difference(const struct report *report, struct similarity *ret_difference)
{
    size_t runs = report->input->run_count;
    AUTO_FREE struct run_context *contexts = calloc(runs, sizeof(*contexts));

    if (!contexts)
        return -ENOMEM;
    for (size_t run = 0; run < runs; run++)
        contexts[run].similarity = report->objects.similarities[run];
    return votes_difference(contexts, runs - 1, -1, &contexts[runs - 1], ret_difference);
}

static int print_matrices(struct report *report, const struct rows *rows, struct error *err)
{
    CLEANUP(similarity_release) struct similarity difference = {0};
    const struct similarity *similarities = report->objects.similarities;
    size_t last = report->input->run_count - 1;
    int r;

    if (!report_compares(report))
        return print_matrix(report, rows, &similarities[0], HEAT_SIMILARITY,
                            "Similarity of the threads (JSM)", "Bright: similar. Dark: different.", err);
    if (make_difference(report, &difference) < 0)
        return error_no_memory(err);
    r = print_matrix(report, rows, &difference, HEAT_CHANGE, "What changed (JSM_D)",
                     report->input->run_count > 2
                         ? "How far the similarities of the candidate run are outside the range of the "
                           "baseline runs. Dark rows and columns are threads whose similarity to the "
                           "others changed."
                         : "The difference between the two matrices below. Dark rows and columns are "
                           "threads whose similarity to the others changed.",
                     err);
    html_side_by_side_begin(report->out);
    if (r == 0)
        r = print_matrix(report, rows, &similarities[0], HEAT_SIMILARITY,
                         "Similarity in the baseline run (JSM, normal)", "Bright: similar. Dark: different.",
                         err);
    if (r == 0)
        r = print_matrix(report, rows, &similarities[last], HEAT_SIMILARITY,
                         "Similarity in the candidate run (JSM, faulty)", "Bright: similar. Dark: different.",
                         err);
    html_side_by_side_end(report->out);
    return r;
}

int report_matrices(struct report *report, struct error *err)
{
    const struct report_objects *objects = &report->objects;
    struct rows rows = {0};
    int r;

    if (!objects->count) {
        html_paragraph(report->out, NULL, "No thread of all runs could be compared.");
        return 0;
    }
    print_parameters(report);
    rows.groups = report_objects_choose(objects, MOST_ROWS, &rows.count);
    if (!rows.groups)
        return error_no_memory(err);
    r = print_matrices(report, &rows, err);
    if (rows.count < objects->group_count)
        html_paragraph(report->out, "note",
                       "Omitted from the matrices: %zu of %zu rows, of %s. tracectl jsm --csv "
                       "prints all.",
                       objects->group_count - rows.count, objects->group_count,
                       report->input->ranking ? "threads that changed less" : "the last threads");
    free(rows.groups);
    return r < 0 ? r : explain_folded(report, err);
}

/* ------------------------------------------------------------------------------------------ dendrograms */

/* The rows of the linkage matrix of one run's threads, each with its own weight. */
static int cluster(const struct report *report, size_t run, struct linkage_merge **ret_merges)
{
    const struct report_objects *objects = &report->objects;
    const struct similarity *similarity = &objects->similarities[run];
    AUTO_FREE double *distances = malloc((similarity_size(objects->count) + 1) * sizeof(*distances));
    AUTO_FREE struct linkage_merge *merges = calloc(objects->count + 1, sizeof(*merges));
    size_t at = 0;
    int r;

    if (!distances || !merges)
        return -ENOMEM;
    for (size_t i = 0; i < objects->count; i++)
        for (size_t j = i + 1; j < objects->count; j++)
            distances[at++] = 1 - similarity_at(similarity, objects->group_of[i], objects->group_of[j]);
    r = linkage_of(report->input->linkage, objects->count, distances, merges);
    if (r == 0)
        *ret_merges = take_pointer(merges);
    return r;
}

static int print_dendrogram(struct report *report, const struct linkage_merge *merges, const char *title,
                            struct error *err)
{
    CLEANUP(dendrogram_release) struct dendrogram dendrogram = {0};
    const struct report_objects *objects = &report->objects;
    struct dendrogram_picture picture = {
        .dendrogram = &dendrogram,
        .names = (const char *const *)objects->names,
        .marked = objects->suspect,
        .most = MOST_LEAVES,
        .title = title,
        .description =
            "A tree of the threads: the further right two parts are joined, the less similar they are.",
    };
    AUTO_FREE char *svg = NULL;
    size_t undrawn = 0;

    if (dendrogram_build(merges, objects->count, &dendrogram) < 0)
        return error_no_memory(err);
    svg = dendrogram_svg(&picture, &undrawn);
    if (!svg)
        return error_no_memory(err);
    if (undrawn)
        html_figure(report->out, svg,
                    "%s. The lowest %zu merges are not drawn: the merged threads share a line.", title,
                    undrawn);
    else
        html_figure(report->out, svg, "%s. Similar threads share a line.", title);
    return 0;
}

static void print_b_score(struct report *report, const struct linkage_merge *normal,
                          const struct linkage_merge *faulty)
{
    double score;

    if (b_score(normal, faulty, report->objects.count, NULL, &score) == 0)
        html_paragraph(report->out, NULL,
                       "B-score of the two trees: %.3f. It is 1 if the fault did not change which "
                       "threads are similar, and near 0 if it changed all similarities.",
                       score);
}

static int print_clusters(struct report *report, struct error *err)
{
    struct linkage_merge *merges[2] = {NULL, NULL};
    size_t last = report->input->run_count - 1;
    int r = cluster(report, 0, &merges[0]);

    if (r == 0 && last)
        r = cluster(report, last, &merges[1]);
    if (r < 0) {
        error_set(err, r, NULL, "clustering the threads");
    } else {
        if (last)
            print_b_score(report, merges[0], merges[1]);
        html_side_by_side_begin(report->out);
        r = print_dendrogram(report, merges[0], last ? "Baseline run" : "Clusters of the threads", err);
        if (r == 0 && last)
            r = print_dendrogram(report, merges[1], "Candidate run", err);
        html_side_by_side_end(report->out);
    }
    free(merges[0]);
    free(merges[1]);
    return r;
}

int report_clusters(struct report *report, struct error *err)
{
    size_t count = report->objects.count;

    if (!count || count > MOST_CLUSTERED) {
        html_paragraph(report->out, NULL,
                       count ? "Omitted: %zu threads are too many for a page. tracectl cluster prints the "
                               "tree as text."
                             : "There are no threads to cluster.",
                       count);
        return 0;
    }
    html_paragraph(report->out, NULL,
                   "The two nearest threads, or groups of threads, are joined repeatedly, with %s "
                   "linkage; the distance of two threads is 1 minus their similarity.",
                   linkage_name(report->input->linkage));
    return print_clusters(report, err);
}
