/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl go model: where a Go program uses channels, goroutines and locks. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/common/output.h"
#include "cli/common/table.h"
#include "cli/go/go_commands.h"
#include "image/go/go_usage.h"

enum { KEY_ALL = 1000 };

struct arguments {
    const char *binary; /* first: see go_parse_binary() */
    bool all;
};

static const struct argp_option options[] = {
    {"all", KEY_ALL, 0, 0, "Include the runtime and the standard library", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct arguments *arguments = state->input;

    if (key != KEY_ALL)
        return go_parse_binary(key, arg, state);
    arguments->all = true;
    return 0;
}

/* ---------------------------------------------------------------------------------------------- json */

static json_t *fast_path_json(const struct go_fast_path *fast)
{
    if (!fast->atomic)
        return json_null();
    return json_pack("{s:o, s:o, s:i, s:b, s:b, s:i, s:i, s:i, s:i, s:i}", "atomic",
                     cli_json_count(fast->atomic), "branch", cli_json_count(fast->branch), "condition",
                     fast->condition, "slow_taken", fast->slow_taken, "address_kept", fast->address_kept,
                     "base", fast->base, "index", fast->index, "scale", fast->scale, "displacement",
                     (int)fast->displacement, "field", (int)fast->field);
}

static json_t *sites_json(const struct go_usage *usage)
{
    json_t *sites = json_array();

    for (size_t i = 0; i < usage->site_count; i++) {
        const struct go_site *site = &usage->sites[i];

        json_array_append_new(sites, json_pack("{s:o, s:o, s:o, s:s?, s:o}", "address",
                                               cli_json_count(site->address), "before",
                                               site->before ? cli_json_count(site->before) : json_null(),
                                               "function", cli_json_count(site->function), "callee",
                                               site->callee, "fast_path", fast_path_json(&site->fast)));
    }
    return sites;
}

static json_t *cases_json(const struct go_usage *usage)
{
    json_t *cases = json_array();

    for (size_t i = 0; i < usage->case_count; i++) {
        const struct go_case *select_case = &usage->cases[i];

        json_array_append_new(cases,
                              json_pack("{s:i, s:s, s:o}", "case", (int)select_case->number, "operation",
                                        select_case->send ? "send" : "recv", "line",
                                        select_case->line ? cli_json_count(select_case->line) : json_null()));
    }
    return cases;
}

static json_t *usage_json(const struct go_usage *usage)
{
    json_t *object = json_pack(
        "{s:o, s:i, s:o, s:s, s:s, s:b, s:o}", "file", cli_json_text(usage->file), "line", (int)usage->line,
        "function", cli_json_text(usage->function), "object", go_object_name(usage->object), "operation",
        go_operation_name(usage->operation), "standard", usage->standard, "sites", sites_json(usage));

    if (usage->operation == GO_SELECT) {
        json_object_set_new(object, "blocks", json_boolean(usage->blocks));
        json_object_set_new(object, "cases", cases_json(usage));
    }
    if (usage->operation == GO_GO)
        json_object_set_new(object, "starts", usage->starts ? cli_json_text(usage->starts) : json_null());
    return object;
}

static void print_json(const struct go_model *model, bool all)
{
    struct json_array array;

    cli_json_begin(&array);
    for (size_t i = 0; i < model->count && !cli_output_broken(); i++)
        if (all || !model->usages[i].standard)
            cli_json_item(&array, usage_json(&model->usages[i]));
    cli_json_end(&array);
}

/* ---------------------------------------------------------------------------------------------- text */

/* By line; what has none comes last. */
static int compare_cases(const void *left, const void *right)
{
    const struct go_case *a = left, *b = right;
    unsigned a_line = a->line - 1, b_line = b->line - 1;

    return (a_line > b_line) - (a_line < b_line);
}

/* "send (line 12), recv (line 14), default" in the order of the source: numbers are not in that order. */
static void put_cases(FILE *out, const struct go_usage *usage)
{
    if (usage->case_count)
        qsort(usage->cases, usage->case_count, sizeof(*usage->cases), compare_cases);
    for (size_t i = 0; i < usage->case_count; i++) {
        text_print(out, "%s%s", i ? ", " : "", usage->cases[i].send ? "send" : "recv");
        if (usage->cases[i].line && usage->cases[i].line != usage->line)
            text_print(out, " (line %u)", usage->cases[i].line);
    }
    if (!usage->blocks)
        text_print(out, "%sdefault", usage->case_count ? ", " : "");
    else if (!usage->case_count)
        fputs("no cases", out);
}

static void put_details(FILE *out, const struct go_usage *usage)
{
    size_t fast = 0;

    if (usage->operation == GO_SELECT)
        put_cases(out, usage);
    if (usage->operation == GO_GO && usage->starts)
        text_print(out, "starts %s", usage->starts);
    for (size_t i = 0; i < usage->site_count; i++)
        fast += usage->sites[i].fast.atomic != 0;
    if (fast)
        fputs("inlined", out);
    if (usage->site_count > 1)
        text_print(out, "%sat %zu places", fast || ftell(out) > 0 ? ", " : "", usage->site_count);
}

static void print_row(struct table *table, const struct go_usage *usage)
{
    char *details = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&details, &size);

    if (stream) {
        put_details(stream, usage);
        fclose(stream);
    }
    table_cell_format(table, "%s:%u", usage->file, usage->line);
    table_cell(table, usage->function);
    table_cell(table, go_object_name(usage->object));
    table_cell(table, go_operation_name(usage->operation));
    table_cell(table, details ? details : "");
    free(details);
}

static int print_text(const struct go_model *model, bool all)
{
    static const char *const titles[] = {"PLACE", "FUNCTION", "OBJECT", "OPERATION", "DETAILS"};
    struct table *table = table_new(stdout, titles, ARRAY_SIZE(titles), cli_colour());
    size_t shown = 0;

    for (size_t i = 0; table && i < model->count && !cli_output_broken(); i++) {
        if (!all && model->usages[i].standard)
            continue;
        print_row(table, &model->usages[i]);
        shown++;
    }
    if (!table || table_free(table) < 0)
        return -ENOMEM;
    if (cli.verbosity < 0)
        return 0;
    text_print(stdout, "\n%zu operations", shown);
    if (!all && shown < model->count)
        text_print(stdout, ", and %zu of the standard library (--all)", model->count - shown);
    putchar('\n');
    return 0;
}

/* ---------------------------------------------------------------------------------------------- the command
 */

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "BINARY",
    .doc =
        "List every operation on channels, locks and similar objects in the functions of a Go program, "
        "with file and line.\vThe operations are found in the program's instructions, stripped or not: a "
        "select with one case and no default appears as a plain send or receive, one case with default "
        "at the line of its case. Operations that the compiler removed are not listed, nor are calls "
        "through an interface (sync.Locker) or a function value. Inlined functions are counted at their "
        "source line.\n\n"
        "With --json, each operation lists its places in the code: the address of the call and, for the "
        "fast path of an inlined lock, the atomic instruction, the branch after it and the operand with "
        "the lock's address.",
    .children = cli_common_children,
};

static int run(int argc, char **argv)
{
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    CLEANUP(go_model_release) struct go_model model = {0};
    struct arguments arguments = {0};
    struct error err = {0};

    cli_parse(&go_model_command, argc, argv, &arguments);
    if (elf_image_open(arguments.binary, &image, &err) < 0 || go_model_read(image, &model, &err) < 0)
        return cli_fail(&err);
    if (cli.json)
        print_json(&model, arguments.all);
    else if (print_text(&model, arguments.all) < 0) {
        error_no_memory(&err);
        return cli_fail(&err);
    }
    return cli_finish(EXIT_NOTHING_FOUND);
}

const struct command go_model_command = {
    .name = "go model",
    .summary = "list the operations on channels and locks in a program",
    .argp = &argp,
    .examples =
        "List the channel and lock operations of a program:\n"
        "  tracectl go model ./server\n",
    .run = run,
};
