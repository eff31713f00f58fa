/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl go coverage: which of the concurrency requirements of a Go program runs have covered. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/go/coverage.h"
#include "base/array.h"
#include "base/error.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/common/output.h"
#include "cli/common/table.h"
#include "cli/go/go_commands.h"

enum { KEY_STANDARD = 1000, KEY_UNCOVERED, MOST_RUN_COLUMNS = 8 };

struct arguments {
    char **runs;
    size_t run_count;
    bool standard, uncovered;
};

static const struct argp_option options[] = {
    {"uncovered", KEY_UNCOVERED, 0, 0, "List only requirements that no run has covered", 0},
    {"standard", KEY_STANDARD, 0, 0, "Include operations of the standard library", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct arguments *arguments = state->input;

    switch (key) {
    case KEY_UNCOVERED:
        arguments->uncovered = true;
        return 0;
    case KEY_STANDARD:
        arguments->standard = true;
        return 0;
    case ARGP_KEY_ARGS:
        arguments->runs = state->argv + state->next;
        arguments->run_count = (size_t)(state->argc - state->next);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no run");
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* One requirement, for whoever prints. */
struct row {
    const struct go_covered_usage *usage;
    const struct go_usage_part *part;
    const struct go_requirement *requirement;
    enum go_requirement_kind kind;
};

static int each_row(struct go_coverage *coverage, bool uncovered,
                    void (*print)(void *context, const struct row *row), void *context)
{
    const struct go_covered_usage *const *usages = NULL;
    size_t count = go_coverage_usages(coverage, &usages);

    if (count && !usages)
        return -ENOMEM;
    for (size_t i = 0; i < count && !cli_output_broken(); i++)
        for (size_t part = 0; part < usages[i]->part_count; part++)
            for (int kind = 0; kind < GO_REQUIREMENT_KINDS; kind++) {
                struct row row = {usages[i], &usages[i]->parts[part],
                                  &usages[i]->parts[part].requirements[kind], (enum go_requirement_kind)kind};

                if (row.requirement->wanted && !(uncovered && row.requirement->cover_count))
                    print(context, &row);
            }
    return 0;
}

/* "case 1 recv (line 18) blocked"; "blocked" of what is no select. */
static void requirement_text(const struct row *row, char *text, size_t size)
{
    const char *name = go_requirement_name(row->usage->operation, row->kind);
    char line[32] = "";

    if (row->usage->operation != GO_OP_SELECT) {
        snprintf(text, size, "%s", name);
        return;
    }
    if (row->part->line && row->part->line != row->usage->line)
        snprintf(line, sizeof(line), " (line %d)", row->part->line);
    snprintf(text, size, "case %zu %s%s %s", (size_t)(row->part - row->usage->parts),
             row->part->send ? "send" : "recv", line, name);
}

/* ---------------------------------------------------------------------------------------------- json */

static json_t *count_json(struct go_coverage_count count)
{
    return json_pack("{s:o, s:o, s:f}", "covered", cli_json_count(count.covered), "requirements",
                     cli_json_count(count.total), "percent", go_coverage_percent(count));
}

static void add_row_json(void *context, const struct row *row)
{
    json_t *rows = context, *covers = json_array(), *object;

    for (size_t i = 0; i < row->requirement->cover_count; i++) {
        const struct go_cover *cover = &row->requirement->covers[i];

        json_array_append_new(covers,
                              json_pack("{s:i, s:i}", "run", (int)cover->run, "node", (int)cover->node));
    }
    object =
        json_pack("{s:o, s:i, s:s, s:s, s:b, s:b, s:o}", "file", cli_json_text(row->usage->file), "line",
                  row->usage->line, "kind", go_op_name(row->usage->operation), "requirement",
                  go_requirement_name(row->usage->operation, row->kind), "covered",
                  row->requirement->cover_count > 0, "in_model", row->usage->in_model, "covered_by", covers);
    if (row->usage->operation == GO_OP_SELECT)
        json_object_set_new(object, "case",
                            json_pack("{s:i, s:s, s:i}", "number", (int)(row->part - row->usage->parts),
                                      "operation", row->part->send ? "send" : "recv", "line",
                                      row->part->line));
    json_array_append_new(rows, object);
}

static json_t *nodes_json(const struct go_coverage *coverage)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < go_coverage_node_count(coverage); i++) {
        struct go_coverage_node node = go_coverage_node(coverage, i);
        json_t *object = count_json(go_coverage_of_node(coverage, i));

        json_object_set_new(object, "node", json_integer(i));
        json_object_set_new(object, "parent",
                            node.parent == GO_NO_NODE ? json_null() : json_integer(node.parent));
        json_object_set_new(object, "main", json_boolean(node.main));
        json_object_set_new(object, "created_by", node.function ? cli_json_text(node.function) : json_null());
        json_object_set_new(object, "file", node.file ? cli_json_text(node.file) : json_null());
        json_object_set_new(object, "line", json_integer(node.line));
        json_array_append_new(array, object);
    }
    return array;
}

static int print_json(struct go_coverage *coverage, bool uncovered)
{
    AUTO_JSON json_t *document = count_json(go_coverage_total(coverage));
    json_t *runs = json_array(), *rows = json_array();
    int r = each_row(coverage, uncovered, add_row_json, rows);

    for (uint32_t run = 0; run < go_coverage_run_count(coverage); run++) {
        json_t *object = count_json(go_coverage_of_run(coverage, run));

        json_object_set_new(object, "run", cli_json_text(go_coverage_run_name(coverage, run)));
        json_array_append_new(runs, object);
    }
    json_object_set_new(document, "runs", runs);
    json_object_set_new(document, "nodes", nodes_json(coverage));
    json_object_set_new(document, "usages", rows);
    cli_json_print(document);
    return r;
}

/* ---------------------------------------------------------------------------------------------- text */

struct text_rows {
    const struct go_coverage *coverage;
    struct table *table;
    size_t run_columns;
};

/* The nodes that have covered it in a run: "G1", "G0, G2", "G0 and 7 others". */
static void put_nodes(const struct text_rows *rows, const struct row *row, uint32_t run)
{
    char text[64] = "";
    size_t length = 0, left = 0;

    for (size_t i = 0; i < row->requirement->cover_count; i++) {
        const struct go_cover *cover = &row->requirement->covers[i];

        if (cover->run != run)
            continue;
        if (length > 24)
            left++;
        else
            length += (size_t)snprintf(text + length, sizeof(text) - length, "%sG%u", length ? ", " : "",
                                       cover->node);
    }
    if (left)
        snprintf(text + length, sizeof(text) - length, " and %zu others", left);
    table_cell(rows->table, text);
}

static void print_row(void *context, const struct row *row)
{
    struct text_rows *rows = context;
    char requirement[96];

    requirement_text(row, requirement, sizeof(requirement));
    table_cell_format(rows->table, "%s:%d", path_file_name(row->usage->file), row->usage->line);
    table_cell(rows->table, go_op_name(row->usage->operation));
    table_cell(rows->table, requirement);
    for (uint32_t run = 0; run < rows->run_columns; run++)
        put_nodes(rows, row, run);
    table_cell(rows->table, row->requirement->cover_count ? "yes" : "");
}

static void print_percents(const struct text_rows *rows)
{
    char text[16];

    table_cell(rows->table, "");
    table_cell(rows->table, "");
    table_cell(rows->table, "coverage");
    for (uint32_t run = 0; run < rows->run_columns; run++) {
        snprintf(text, sizeof(text), "%.0f %%", go_coverage_percent(go_coverage_of_run(rows->coverage, run)));
        table_cell(rows->table, text);
    }
    snprintf(text, sizeof(text), "%.0f %%", go_coverage_percent(go_coverage_total(rows->coverage)));
    table_cell(rows->table, text);
}

static void print_nodes(const struct go_coverage *coverage)
{
    putchar('\n');
    for (uint32_t i = 0; i < go_coverage_node_count(coverage); i++) {
        struct go_coverage_node node = go_coverage_node(coverage, i);
        struct go_coverage_count count = go_coverage_of_node(coverage, i);

        text_print(stdout, "G%u: ", i);
        if (node.main)
            fputs("the main goroutine", stdout);
        else if (!node.file)
            fputs("goroutines with an unknown creator", stdout);
        else
            text_print(stdout, "created in %s at %s:%d", node.function, path_file_name(node.file), node.line);
        if (node.parent != GO_NO_NODE)
            text_print(stdout, " by G%u", node.parent);
        text_print(stdout, "; %zu of %zu requirements covered\n", count.covered, count.total);
    }
}

static int print_text(struct go_coverage *coverage, bool uncovered)
{
    const char *titles[4 + MOST_RUN_COLUMNS] = {"PLACE", "KIND", "REQUIREMENT"};
    char names[MOST_RUN_COLUMNS][40];
    struct text_rows rows = {.coverage = coverage};
    struct go_coverage_count total = go_coverage_total(coverage);
    int r;

    if (go_coverage_run_count(coverage) <= MOST_RUN_COLUMNS && !uncovered)
        rows.run_columns = go_coverage_run_count(coverage);
    for (uint32_t run = 0; run < rows.run_columns; run++) {
        snprintf(names[run], sizeof(names[run]), "RUN %.34s", go_coverage_run_name(coverage, run));
        titles[3 + run] = names[run];
    }
    titles[3 + rows.run_columns] = "COVERED";
    rows.table = table_new(stdout, titles, 4 + rows.run_columns, cli_colour());
    if (!rows.table)
        return -ENOMEM;
    r = each_row(coverage, uncovered, print_row, &rows);
    print_percents(&rows);
    if (table_free(rows.table) < 0 || r < 0)
        return -ENOMEM;
    if (rows.run_columns)
        print_nodes(coverage);
    if (cli.verbosity >= 0)
        text_print(stdout, "\n%zu of %zu requirements covered in %zu run%s\n", total.covered, total.total,
                   go_coverage_run_count(coverage), go_coverage_run_count(coverage) == 1 ? "" : "s");
    return 0;
}

/* ---------------------------------------------------------------------------------------------- the command
 */

static int read_run(struct go_coverage *coverage, const char *argument, struct error *err)
{
    AUTO_STORE struct tracestore *store = NULL;
    AUTO_RUN struct tracestore_run run = {0};
    int r = cli_open_run(argument, TRACESTORE_READ, &store, &run, err);

    return r < 0 ? r : go_coverage_read_run(coverage, store, &run, err);
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "RUN...",
    .doc =
        "List the concurrency requirements of a program, from its operations, and which of them these "
        "runs covered: an operation blocked, unblocked another goroutine, held a lock that another one "
        "waited for, or none of these.\vRequirements and percentage are those of GoAT (Taheri and "
        "Gopalakrishnan, IISWC 2021). G0, G1... are goroutines, matched across runs by their place of "
        "creation and their creator.",
    .children = cli_common_children,
};

static int run_coverage(struct go_coverage *coverage, const struct arguments *arguments, struct error *err)
{
    int r = 0;

    for (size_t i = 0; !r && i < arguments->run_count; i++)
        r = read_run(coverage, arguments->runs[i], err);
    if (r < 0)
        return r;
    r = cli.json ? print_json(coverage, arguments->uncovered) : print_text(coverage, arguments->uncovered);
    return r < 0 ? error_no_memory(err) : 0;
}

static int run(int argc, char **argv)
{
    struct arguments arguments = {0};
    struct go_coverage *coverage;
    struct error err = {0};
    int r;

    cli_parse(&go_coverage_command, argc, argv, &arguments);
    if (go_coverage_new(arguments.standard, &coverage) < 0) {
        error_no_memory(&err);
        return cli_fail(&err);
    }
    r = run_coverage(coverage, &arguments, &err);
    go_coverage_free(coverage);
    return r < 0 ? cli_fail(&err) : cli_finish(EXIT_NOTHING_FOUND);
}

const struct command go_coverage_command = {
    .name = "go coverage",
    .summary = "show which concurrency requirements runs have covered",
    .argp = &argp,
    .examples =
        "Show which requirements two runs covered:\n"
        "  tracectl go coverage first second\n"
        "List only what is still uncovered:\n"
        "  tracectl go coverage --uncovered latest\n",
    .run = run,
};
