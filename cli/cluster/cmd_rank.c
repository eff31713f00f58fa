/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl rank: which threads changed most between runs, over many combinations of parameters. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/cluster/ranking_input.h"
#include "cli/common/command.h"
#include "cli/common/table.h"

enum { KEY_MOST = 0x500 };
enum { DEFAULT_MOST = 20, MOST_OBJECTS = 8 };

struct rank_arguments {
    struct ranking_arguments ranking;
    const char *runs[2];
    unsigned most;
};

static const struct argp_option options[] = {
    {"most", KEY_MOST, "N", 0, "Show the first N rows of each table (default 20; 0: all)", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct rank_arguments *arguments = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &arguments->ranking;
        return 0;
    case KEY_MOST:
        arguments->most = (unsigned)cli_parse_number(state, "--most", arg, 0, UINT_MAX);
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num >= 2)
            argp_usage(state);
        arguments->runs[state->arg_num] = arg;
        return 0;
    case ARGP_KEY_END:
        if (state->arg_num < 2)
            argp_usage(state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static size_t at_most(const struct rank_arguments *arguments, size_t count)
{
    return arguments->most && arguments->most < count ? arguments->most : count;
}

/* ------------------------------------------------------------------------------------------ JSON */

static json_t *labels_json(const struct ranking_objects *objects, const uint32_t *which, size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, cli_json_text(objects->labels[which[i]]));
    return array;
}

static json_t *rows_json(const struct rank_arguments *arguments, const struct ranking_input *input)
{
    const struct ranking *ranking = &input->ranking;
    json_t *array = json_array();

    for (size_t i = 0; i < at_most(arguments, ranking->row_count); i++) {
        const struct ranking_row *row = &ranking->rows[i];
        const struct ranking_view *view = &input->views[row->view];

        json_array_append_new(
            array,
            json_pack("{s:o, s:s, s:i, s:s, s:f, s:f, s:o, s:o}", "filter", cli_json_text(view->filter),
                      "attributes", attribute_kind_name(row->attributes), "k", (int)view->max_body, "linkage",
                      linkage_name(row->linkage), "b_score", row->b_score, "confidence", row->confidence,
                      "processes", labels_json(&ranking->processes, row->processes, row->process_count),
                      "threads", labels_json(&ranking->threads, row->threads, row->thread_count)));
    }
    return array;
}

static json_t *consensus_json(const struct ranking_objects *objects, const char *what)
{
    json_t *array = json_array();

    for (size_t i = 0; i < objects->count; i++) {
        const struct ranked *ranked = &objects->consensus[i];

        json_array_append_new(array, json_pack("{s:o, s:f, s:f, s:f, s:f, s:f, s:b}", what,
                                               cli_json_text(objects->labels[ranked->object]), "score",
                                               ranked->score, "change", ranked->change, "variation",
                                               ranked->variation, "own", ranked->own, "own_variation",
                                               ranked->own_variation, "hangs", ranked->hangs));
    }
    return array;
}

static json_t *unranked_json(const struct ranking *ranking, enum unranked_why why)
{
    json_t *array = json_array();

    for (size_t i = 0; i < ranking->unranked_count; i++)
        if (ranking->unranked[i].why == why)
            json_array_append_new(array, cli_json_text(ranking->unranked[i].label));
    return array;
}

static void print_json(const struct rank_arguments *arguments, const struct ranking_input *input)
{
    const struct ranking *ranking = &input->ranking;
    AUTO_JSON json_t *document = json_object();

    json_object_set_new(document, "rows", rows_json(arguments, input));
    json_object_set_new(document, "consensus", consensus_json(&ranking->threads, "thread"));
    json_object_set_new(document, "consensus_processes", consensus_json(&ranking->processes, "process"));
    json_object_set_new(document, "normal_runs", json_integer((json_int_t)input->runs.count - 1));
    json_object_set_new(document, "only_normal", unranked_json(ranking, UNRANKED_ONLY_NORMAL));
    json_object_set_new(document, "only_faulty", unranked_json(ranking, UNRANKED_ONLY_FAULTY));
    json_object_set_new(document, "varies", unranked_json(ranking, UNRANKED_VARIES));
    json_object_set_new(document, "unknown", unranked_json(ranking, UNRANKED_UNKNOWN));
    json_object_set_new(document, "no_rank", unranked_json(ranking, UNRANKED_NO_RANK));
    json_object_set_new(document, "completeness",
                        completeness_json(input->runs.completeness, input->runs.count));
    cli_json_print(document);
}

/* ------------------------------------------------------------------------------------------ text */

static void print_objects(struct table *table, const struct ranking_objects *objects, const uint32_t *which,
                          size_t count)
{
    char text[256];
    size_t used = 0;

    *text = 0;
    for (size_t i = 0; i < count && i < MOST_OBJECTS && used < sizeof(text) - 32; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%.20s", i ? " " : "",
                                 objects->labels[which[i]]);
    if (count > MOST_OBJECTS)
        snprintf(text + used, sizeof(text) - used, " +%zu", count - MOST_OBJECTS);
    table_cell(table, text);
}

static int print_rows(const struct rank_arguments *arguments, const struct ranking_input *input)
{
    static const char *const titles[] = {"FILTER",   "ATTRIBUTES", ">K",     "LINKAGE",
                                         ">B-SCORE", "PROCESSES",  "THREADS"};
    struct table *table = table_new(stdout, titles, ARRAY_SIZE(titles), cli_colour());
    const struct ranking *ranking = &input->ranking;

    if (!table)
        return -ENOMEM;
    for (size_t i = 0; i < at_most(arguments, ranking->row_count); i++) {
        const struct ranking_row *row = &ranking->rows[i];

        table_cell(table, input->views[row->view].filter);
        table_cell(table, attribute_kind_name(row->attributes));
        table_cell_count(table, input->views[row->view].max_body);
        table_cell(table, linkage_name(row->linkage));
        table_cell_format(table, "%.3f", row->b_score);
        print_objects(table, &ranking->processes, row->processes, row->process_count);
        print_objects(table, &ranking->threads, row->threads, row->thread_count);
    }
    return table_free(table);
}

/* Returns the number of lines printed. */
static int print_consensus(const struct rank_arguments *arguments, const struct ranking_input *input)
{
    static const char *const titles[] = {">SCORE", "THREAD", "LAST CALL"};
    const struct ranking_objects *objects = &input->ranking.threads;
    size_t suspects = ranking_suspects(objects);
    struct table *table;

    if (!suspects) {
        text_print(stdout, "No thread stands out%s.\n",
                   input->runs.count > 2 ? " more than the baseline runs differ among themselves" : "");
        return 0;
    }
    table = table_new(stdout, titles, ARRAY_SIZE(titles), cli_colour());
    if (!table)
        return -ENOMEM;
    for (size_t i = 0; i < at_most(arguments, suspects); i++) {
        table_cell_format(table, "%.3f", objects->consensus[i].score);
        table_cell(table, objects->labels[objects->consensus[i].object]);
        table_cell(table, objects->consensus[i].hangs ? "never returned" : "");
    }
    return table_free(table);
}

static void print_unranked(const struct ranking *ranking, enum unranked_why why, const char *title)
{
    size_t count = 0;

    for (size_t i = 0; i < ranking->unranked_count; i++) {
        if (ranking->unranked[i].why != why)
            continue;
        if (count < MOST_OBJECTS)
            text_print(stdout, "%s%s", count ? " " : title, ranking->unranked[i].label);
        count++;
    }
    if (count > MOST_OBJECTS)
        text_print(stdout, " and %zu more", count - MOST_OBJECTS);
    if (count)
        fputs("\n", stdout);
}

static int print_text(const struct rank_arguments *arguments, const struct ranking_input *input)
{
    const struct ranking *ranking = &input->ranking;
    int r;

    text_print(stdout, "%zu threads and %zu processes, %zu combinations, %zu baseline run%s\n\n",
               ranking->threads.count, ranking->processes.count, ranking->row_count, input->runs.count - 1,
               input->runs.count > 2 ? "s" : "");
    r = print_consensus(arguments, input);
    if (r < 0)
        return r;
    print_unranked(ranking, UNRANKED_ONLY_NORMAL, "only in the baseline run: ");
    print_unranked(ranking, UNRANKED_ONLY_FAULTY, "only in the candidate run: ");
    print_unranked(ranking, UNRANKED_VARIES, "not in all baseline runs: ");
    print_unranked(ranking, UNRANKED_UNKNOWN, "not ranked, events are missing: ");
    print_unranked(ranking, UNRANKED_NO_RANK, "not ranked, without an MPI rank: ");
    completeness_print(input->runs.completeness, input->runs.count);
    if (input->runs.count == 2 && ranking_suspects(&ranking->threads))
        fputs("Only one baseline run, so normal run-to-run variation is included; add --baseline.\n", stdout);
    fputs("\n", stdout);
    return print_rows(arguments, input);
}

/* ------------------------------------------------------------------------------------------ the command */

static int run(int argc, char **argv)
{
    struct rank_arguments arguments = {.most = DEFAULT_MOST};
    CLEANUP(ranking_input_release) struct ranking_input input = {0};
    struct error err = {0};
    int r;

    cli_parse(&cmd_rank, argc, argv, &arguments);
    r = ranking_input_read(&arguments.ranking, arguments.runs[0], arguments.runs[1], &input, &err);
    if (r < 0)
        return cli_loops_fail(r, &err);
    if (cli.json)
        print_json(&arguments, &input);
    else if (print_text(&arguments, &input) < 0)
        return error_no_memory(&err), cli_fail(&err);
    return cli_finish(ranking_finds(&input.ranking) ? EXIT_FOUND : EXIT_NOTHING_FOUND);
}

static const struct argp_child children[] = {
    {&ranking_argp, 0, NULL, 0}, {&cli_common_argp, 0, NULL, 2}, {0}};

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "BASELINE CANDIDATE",
    .doc =
        "Rank the threads of two runs by how much they changed, over many combinations of filters, "
        "attributes, linkages and loop lengths.\vThe first table is the consensus: each combination "
        "votes for the threads that changed more than most, with a high weight if few stand out. The "
        "second table has a row for each combination, lowest B-score first: the B-score is low if the "
        "change affected which threads are similar to each other. Its suspects are the outliers in the "
        "clustering of JSM_D, the difference of the two runs' Jaccard similarity matrices.\n\n"
        "With several baseline runs (--baseline), differences that also occur between baseline runs are "
        "not reported.\n\n"
        "Exit status: 0 no suspects, 1 suspects, 2 usage, 3 failure.",
    .children = children,
};

const struct command cmd_rank = {
    .name = "rank",
    .summary = "rank threads by how much they changed between runs",
    .argp = &argp,
    .examples =
        "Rank the threads of two runs by how much they changed:\n"
        "  tracectl rank good bad\n"
        "Use only the MPI calls:\n"
        "  tracectl rank --filter mpi good bad\n",
    .run = run,
};
