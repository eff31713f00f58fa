/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl jsm: how similar the threads of a run are to each other. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>

#include "analyzer/cluster/similarity.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/cluster/objects.h"
#include "cli/common/command.h"

enum { KEY_CSV = 'c', DEFAULT_WIDTH = 80, CELL = 4 };

struct jsm_arguments {
    struct objects_arguments objects;
    bool csv;
};

static const struct argp_option options[] = {
    {"csv", KEY_CSV, 0, 0, "Print comma-separated values, with a header line", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct jsm_arguments *arguments = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &arguments->objects;
        return 0;
    case KEY_CSV:
        arguments->csv = true;
        return 0;
    case ARGP_KEY_END:
        if (arguments->csv && cli.json)
            argp_error(state, "--csv and --json cannot be combined");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ------------------------------------------------------------------------------------------ JSON, CSV */

/* With as many digits as it takes to read the same number back. */
static void print_number(double value)
{
    char text[32];

    snprintf(text, sizeof(text), "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, sizeof(text), "%.17g", value);
    text_show(stdout, text);
}

static void print_numbers(const struct similarity *similarity, size_t row)
{
    for (size_t i = 0; i < similarity->count; i++) {
        if (i)
            putchar(',');
        print_number(similarity_at(similarity, row, i));
    }
}

/* Row by row: as a document in memory a large matrix would take fifty times its size. */
static void print_json(const struct jsm_arguments *arguments, const struct loops_input *input,
                       const struct objects *objects, const struct similarity *similarity)
{
    const struct run_loops *run = &input->summary.runs[0];
    AUTO_JSON json_t *labels = cli_objects_labels(objects), *unknown = cli_objects_json_unknown(run),
                     *completeness = completeness_json(input->completeness, 1);

    text_print(stdout, "{\n  \"run\": %" PRId64 ",\n  \"attributes\": \"%s\",\n  \"%s\": ", run->run_id,
               attribute_kind_name(arguments->objects.kind), cli_objects_key(objects));
    json_dumpf(labels, stdout, JSON_COMPACT);
    fputs(",\n  \"matrix\": [", stdout);
    for (size_t row = 0; row < similarity->count && !cli_output_broken(); row++) {
        fputs(row ? ",\n    [" : "\n    [", stdout);
        print_numbers(similarity, row);
        putchar(']');
    }
    fputs("\n  ],\n  \"unknown\": ", stdout);
    json_dumpf(unknown, stdout, JSON_COMPACT);
    fputs(",\n  \"completeness\": ", stdout);
    json_dumpf(completeness, stdout, JSON_COMPACT);
    puts("\n}");
}

/* Labels have no comma and no quote: they are made of numbers, a dot and a letter. */
static void print_csv(const struct objects *objects, const struct similarity *similarity)
{
    fputs(objects->processes ? "process" : "thread", stdout);
    for (size_t i = 0; i < objects->count; i++)
        text_print(stdout, ",%s", objects->labels[i]);
    putchar('\n');
    for (size_t row = 0; row < objects->count && !cli_output_broken(); row++) {
        text_print(stdout, "%s,", objects->labels[row]);
        print_numbers(similarity, row);
        putchar('\n');
    }
}

/* ------------------------------------------------------------------------------------------ text */

/* How many objects have room in a line; on a terminal only. */
static size_t fitting(const struct objects *objects, int width)
{
    struct winsize size;
    size_t columns = DEFAULT_WIDTH;

    if (!isatty(STDOUT_FILENO))
        return objects->count;
    if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
        columns = size.ws_col;
    columns = columns / (size_t)(width + 2);
    columns = columns > 2 ? columns - 1 : 1;
    return columns < objects->count ? columns : objects->count;
}

/* 1 and 0 are exact; what is only near them stays visibly so. */
static void print_cell(double value, int width)
{
    if (value == 1 || value == 0)
        text_print(stdout, "  %*.0f", width, value);
    else
        text_print(stdout, "  %*.2f", width, value < 0.01 ? 0.01 : value > 0.99 ? 0.99 : value);
}

static void print_text(const struct loops_input *input, const struct objects *objects,
                       const struct similarity *similarity)
{
    int width = CELL;
    size_t shown;

    for (size_t i = 0; i < objects->count; i++)
        width = (int)strlen(objects->labels[i]) > width ? (int)strlen(objects->labels[i]) : width;
    shown = fitting(objects, width);
    text_print(stdout, "%-*s", width, "");
    for (size_t i = 0; i < shown; i++)
        text_print(stdout, "  %*s", width, objects->labels[i]);
    putchar('\n');
    for (size_t row = 0; row < shown && !cli_output_broken(); row++) {
        text_print(stdout, "%-*s", width, objects->labels[row]);
        for (size_t i = 0; i < shown; i++)
            print_cell(similarity_at(similarity, row, i), width);
        putchar('\n');
    }
    if (shown < objects->count)
        text_print(
            stdout,
            "%zu of %zu %s do not fit on the screen (write to a file or a pipe, or use --csv or --json, "
            "to get all)\n",
            objects->count - shown, objects->count, cli_objects_key(objects));
    cli_objects_print_unknown(input);
}

/* ------------------------------------------------------------------------------------------ the command */

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "RUN",
    .doc =
        "Show how similar the threads of a run are to each other: the Jaccard similarity matrix of "
        "their attributes.\vThe similarity of two threads is the number of attributes that both have "
        "divided by the number that at least one has: from 0 to 1; exactly 0 and 1 are printed without "
        "decimals. It is consistent with the concept lattice (tracectl lattice).",
    .children = cli_objects_children,
};

static int run(int argc, char **argv)
{
    CLEANUP(cli_loops_release) struct loops_input input = {0};
    CLEANUP(cli_objects_release) struct objects objects = {0};
    CLEANUP(similarity_release) struct similarity similarity = {0};
    struct jsm_arguments arguments = {0};
    struct error err = {0};
    int r;

    cli_parse(&cmd_jsm, argc, argv, &arguments);
    r = cli_objects_read(&arguments.objects, &input, &objects, &err);
    if (r < 0)
        return cli_loops_fail(r, &err);
    if (similarity_of_sets(objects.sets, objects.count, &similarity) < 0)
        return error_no_memory(&err), cli_fail(&err);
    if (cli.json)
        print_json(&arguments, &input, &objects, &similarity);
    else if (arguments.csv)
        print_csv(&objects, &similarity);
    else
        print_text(&input, &objects, &similarity);
    return cli_finish(EXIT_NOTHING_FOUND);
}

const struct command cmd_jsm = {
    .name = "jsm",
    .summary = "show the similarity matrix of a run's threads",
    .argp = &argp,
    .examples =
        "Print the similarity matrix of the threads of a run:\n"
        "  tracectl jsm latest\n"
        "Export the matrix of its processes:\n"
        "  tracectl jsm --processes --csv latest > matrix.csv\n",
    .run = run,
};
