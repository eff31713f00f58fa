/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/diff/diff_functions.h"

#include <stdlib.h>

#include "analyzer/times/time_text.h"
#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/table.h"

/* Lines of text without --full, heads and totals included. */
enum { MOST_LINES = 40, OTHER_LINES = 4, MOST_LEADING = 12 };

/* ------------------------------------------------------------------------------------------ text */

static void cell_calls(struct table *table, const struct function_change *function)
{
    char before[32], after[32];

    text_count(function->before.calls, before, sizeof(before));
    text_count(function->after.calls, after, sizeof(after));
    if (function->before.calls == function->after.calls)
        table_cell(table, after);
    else
        table_cell_format(table, "%s -> %s", before, after);
}

static void side_text(const struct change_side *side, struct time_range range, char text[TIME_TEXT_SIZE])
{
    if (side->calls)
        time_range_text(range, text);
    else
        snprintf(text, TIME_TEXT_SIZE, "-");
}

static void cell_times(struct table *table, const struct function_change *function, struct time_range before,
                       struct time_range after)
{
    char old[TIME_TEXT_SIZE], new[TIME_TEXT_SIZE];

    side_text(&function->before, before, old);
    side_text(&function->after, after, new);
    table_cell_format(table, "%s -> %s", old, new);
}

static int print_table(const struct function_changes *changes, size_t count)
{
    static const char *const plain[] = {">CALLS", "FUNCTION"};
    static const char *const timed[] = {">CALLS", ">TIME", ">SELF", ">P99", "FUNCTION"};
    struct table *table = changes->timed ? table_new(stdout, timed, ARRAY_SIZE(timed), cli_colour())
                                         : table_new(stdout, plain, ARRAY_SIZE(plain), cli_colour());

    if (!table)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const struct function_change *function = &changes->functions[i];

        cell_calls(table, function);
        if (changes->timed) {
            cell_times(table, function, function->before.total, function->after.total);
            cell_times(table, function, function->before.self, function->after.self);
            cell_times(table, function, function->before.p99, function->after.p99);
        }
        table_cell(table, function->name);
    }
    return table_free(table);
}

static int print_text(const struct loops_input *input, const struct function_changes *changes, bool full)
{
    const struct tracestore_run *before = &input->runs[0], *after = &input->runs[input->count - 1];
    size_t count = full ? changes->count : changes->changed, most = MOST_LINES - OTHER_LINES;
    struct cli_pager pager;
    int r = 0;

    cli_pager_begin(&pager);
    text_print(
        stdout, "%zu of %zu functions changed from run %lld, %s (baseline), to run %lld, %s (candidate)%s\n",
        changes->changed, changes->count, (long long)before->run_id, before->name, (long long)after->run_id,
        after->name, changes->timed ? "." : "; times were not recorded (record --time full).");
    if (!full && count > most)
        count = most;
    if (count)
        r = print_table(changes, count);
    if (r == 0 && !full && count < changes->changed)
        text_print(stdout, "... and %zu more (--full shows all functions)\n", changes->changed - count);
    completeness_print(input->completeness, input->count);
    cli_pager_end(&pager);
    return r;
}

int diff_functions_lead(const struct function_changes *changes, const char *const *runs)
{
    size_t count = changes->changed < MOST_LEADING ? changes->changed : MOST_LEADING;
    int r;

    if (!changes->timed || !changes->changed)
        return 0;
    text_print(stdout,
               "%zu of %zu functions changed in calls or times; those with most time of their own first:\n",
               changes->changed, changes->count);
    r = print_table(changes, count);
    if (r == 0 && count < changes->changed)
        text_print(stdout, "... and %zu more (tracectl diff --functions %s %s)\n", changes->changed - count,
                   runs[0], runs[1]);
    putchar('\n');
    return r;
}

/* ------------------------------------------------------------------------------------------ JSON */

static void set_time(json_t *side, const char *exact, const char *least, const char *most,
                     struct time_range range)
{
    bool known = range.min_ns || range.max_ns != UINT64_MAX;

    json_object_set_new(side, exact, time_range_is_exact(range) ? cli_json_count(range.min_ns) : json_null());
    json_object_set_new(side, least, known ? cli_json_count(range.min_ns) : json_null());
    json_object_set_new(side, most, range.max_ns != UINT64_MAX ? cli_json_count(range.max_ns) : json_null());
}

static json_t *side_json(const struct change_side *side)
{
    json_t *json = json_pack("{s:I}", "calls", (json_int_t)side->calls);

    if (!side->calls)
        return json;
    set_time(json, "total_ns", "total_min_ns", "total_max_ns", side->total);
    set_time(json, "self_ns", "self_min_ns", "self_max_ns", side->self);
    set_time(json, "p99_ns", "p99_min_ns", "p99_max_ns", side->p99);
    return json;
}

json_t *diff_functions_json(const struct function_changes *changes, size_t count)
{
    json_t *functions = json_array();

    for (size_t i = 0; i < count; i++) {
        const struct function_change *function = &changes->functions[i];

        json_array_append_new(functions,
                              json_pack("{s:o, s:o, s:f, s:o, s:o}", "function",
                                        cli_json_text(function->name), "image",
                                        cli_json_text(function->image), "change", function->change, "normal",
                                        side_json(&function->before), "faulty", side_json(&function->after)));
    }
    return functions;
}

static void print_json(const struct loops_input *input, const struct function_changes *changes)
{
    AUTO_JSON json_t *document =
        json_pack("{s:I, s:I, s:b, s:I, s:o, s:o}", "normal", (json_int_t)input->runs[0].run_id, "faulty",
                  (json_int_t)input->runs[input->count - 1].run_id, "timed", changes->timed, "changed",
                  (json_int_t)changes->changed, "functions", diff_functions_json(changes, changes->count),
                  "completeness", completeness_json(input->completeness, input->count));
    cli_json_print(document);
}

/* ------------------------------------------------------------------------------------------ both */

int diff_functions_print(const struct diff_arguments *arguments, const char *const *runs, size_t count,
                         bool *ret_found, struct error *err)
{
    CLEANUP(cli_runs_close) struct loops_input input = {0};
    CLEANUP(function_changes_release) struct function_changes changes = {0};
    AUTO_FREE struct change_source *sources = calloc(count, sizeof(*sources));
    int r = sources ? cli_runs_open(runs, count, &input, err) : error_no_memory(err);

    if (r < 0 || !input.runs || !input.count)
        return r;
    for (size_t i = 0; i < count; i++)
        sources[i] = (struct change_source){input.sources[i].store, input.runs[i].run_id};
    r = function_changes_read(sources, count, &changes, err);
    if (r < 0)
        return r;
    *ret_found = changes.changed > 0;
    if (cli.json)
        print_json(&input, &changes);
    else if (print_text(&input, &changes, arguments->full))
        return error_no_memory(err);
    return 0;
}
