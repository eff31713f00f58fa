/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/analysis/slow_output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/times/time_text.h"
#include "base/array.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "cli/common/table.h"

enum {
    CALLERS_SHOWN = 8, /* of the innermost; the outermost is shown besides */
    CALLEES_SHOWN = 8, /* below each call */
};

/* ------------------------------------------------------------------------------------------ names */

static int compare_id(const void *key, const void *item)
{
    uint32_t id = *(const uint32_t *)key, other = ((const struct tracestore_function *)item)->function_id;

    return id < other ? -1 : id > other;
}

static const char *name_of(const struct slow_output *output, uint32_t function)
{
    const struct tracestore_function *found = NULL;

    if (output->function_count)
        found = bsearch(&function, output->functions, output->function_count, sizeof(*output->functions),
                        compare_id);
    return found ? found->demangled : "(unknown function)";
}

static const char *label_of(const struct slow_output *output, int64_t thread_id)
{
    for (size_t i = 0; i < output->thread_count; i++)
        if (output->threads[i].thread_id == thread_id)
            return output->threads[i].label;
    return "?";
}

/* ------------------------------------------------------------------------------------------ text */

static void print_heading(const struct slow_output *output)
{
    const struct slow_calls *calls = output->calls;
    char shown[32], returned[32], other[32];

    text_count(calls->count, shown, sizeof(shown));
    text_count(calls->returned, returned, sizeof(returned));
    text_count(calls->unreturned, other, sizeof(other));
    if (!calls->returned)
        text_print(stdout, "no call of %s returned", output->function);
    else if (calls->count == calls->returned)
        text_print(stdout, "%s call%s of %s, the slowest first", returned, calls->returned == 1 ? "" : "s",
                   output->function);
    else
        text_print(stdout, "the %s slowest of %s calls of %s", shown, returned, output->function);
    if (calls->unreturned)
        text_print(stdout, "; %s did not return (tracectl calls --function NAME %lld lists all)", other,
                   (long long)output->run->run_id);
    putchar('\n');
    if (calls->unknown) {
        text_count(calls->unknown, other, sizeof(other));
        text_print(stdout, "unknown: %s of them have no times (record --time full)\n", other);
    }
}

static void print_callers(const struct slow_output *output, const struct slow_call *call)
{
    size_t count = call->caller_count;

    if (!call->node_count) {
        puts("   its beginning was not kept: its callers and what it called are unknown");
        return;
    }
    fputs(count ? "   called by " : "   not called by a recorded function", stdout);
    for (size_t i = 0; i < count; i++) {
        if (i == CALLERS_SHOWN && i + 1 < count) {
            text_print(stdout, " < ... %zu more", count - 1 - i);
            i = count - 1;
        }
        text_print(stdout, "%s%s", i ? " < " : "", name_of(output, call->callers[i]));
    }
    putchar('\n');
}

static void cell_time(struct table *table, const struct slow_node *node, struct time_range range)
{
    char text[TIME_TEXT_SIZE] = "?";

    if (node->returned == node->calls)
        time_range_text(range, text);
    table_cell(table, text);
}

static void add_more(struct table *table, size_t more, size_t depth)
{
    for (int i = 0; i < 3; i++)
        table_cell(table, "");
    table_cell_format(table, "%*s... %zu more function%s", (int)(2 * depth), "", more, more == 1 ? "" : "s");
}

static void add_node(struct table *table, const struct slow_output *output, const struct slow_call *call,
                     uint32_t at, size_t depth)
{
    const struct slow_node *node = &call->nodes[at];
    size_t shown = 0, more = 0;

    cell_time(table, node, node->total);
    cell_time(table, node, node->self);
    table_cell_count(table, node->calls);
    table_cell_format(table, "%*s%s", (int)(2 * depth), "", name_of(output, node->function));
    for (uint32_t child = node->child; child != SLOW_NO_NODE; child = call->nodes[child].sibling)
        if (shown++ < CALLEES_SHOWN)
            add_node(table, output, call, child, depth + 1);
        else
            more++;
    if (more)
        add_more(table, more, depth + 1);
}

static int print_call(const struct slow_output *output, size_t number)
{
    static const char *const titles[] = {">TOTAL", ">SELF", ">CALLS", "FUNCTION"};
    const struct slow_call *call = &output->calls->calls[number];
    struct table *table;
    char duration[TIME_TEXT_SIZE], since[TIME_TEXT_SIZE];

    time_range_text(call->duration, duration);
    putchar('\n');
    cli_style(cli_colour(), CLI_BOLD);
    text_print(stdout, "%zu. %s", number + 1, duration);
    cli_style(cli_colour(), CLI_PLAIN);
    text_print(stdout, ", thread %s", label_of(output, call->thread_id));
    if (call->ns >= output->run->started_ns) {
        time_text(call->ns - output->run->started_ns, since);
        text_print(stdout, ", %s after the beginning of the run", since);
    }
    text_print(stdout, " (event %" PRIu64 ")\n", call->seq);
    print_callers(output, call);
    if (call->lost)
        puts("   events were lost in it: what it called is incomplete");
    if (!call->node_count)
        return 0;
    table = table_new(stdout, titles, ARRAY_SIZE(titles), cli_colour());
    if (!table)
        return -ENOMEM;
    add_node(table, output, call, 0, 0);
    return table_free(table);
}

int slow_print_text(const struct slow_output *output)
{
    int r = 0;

    print_heading(output);
    for (size_t i = 0; i < output->calls->count && !r && !cli_output_broken(); i++)
        r = print_call(output, i);
    completeness_print(&output->completeness, 1);
    return r;
}

/* ------------------------------------------------------------------------------------------ JSON */

/* `exact` is null unless both bounds are known and the same. */
static void set_time(json_t *object, const char *exact, const char *least, const char *most,
                     struct time_range range)
{
    bool known = range.min_ns || range.max_ns != UINT64_MAX;

    json_object_set_new(object, exact,
                        time_range_is_exact(range) ? cli_json_count(range.min_ns) : json_null());
    json_object_set_new(object, least, known ? cli_json_count(range.min_ns) : json_null());
    json_object_set_new(object, most,
                        range.max_ns != UINT64_MAX ? cli_json_count(range.max_ns) : json_null());
}

static json_t *node_json(const struct slow_output *output, const struct slow_call *call, uint32_t at)
{
    const struct slow_node *node = &call->nodes[at];
    bool known = node->returned == node->calls;
    const struct time_range unknown = {0, UINT64_MAX};
    json_t *callees = json_array();
    json_t *json = json_pack("{s:o, s:I}", "function", cli_json_text(name_of(output, node->function)),
                             "calls", (json_int_t)node->calls);

    set_time(json, "total_ns", "total_min_ns", "total_max_ns", known ? node->total : unknown);
    set_time(json, "self_ns", "self_min_ns", "self_max_ns", known ? node->self : unknown);
    for (uint32_t child = node->child; child != SLOW_NO_NODE; child = call->nodes[child].sibling)
        json_array_append_new(callees, node_json(output, call, child));
    json_object_set_new(json, "callees", callees);
    return json;
}

static json_t *call_json(const struct slow_output *output, const struct slow_call *call)
{
    json_t *callers = json_array();
    json_t *json = json_pack(
        "{s:s, s:I, s:o, s:I}", "thread", label_of(output, call->thread_id), "seq", (json_int_t)call->seq,
        "start_ns", call->ns ? json_integer((json_int_t)(call->ns - output->run->started_ns)) : json_null(),
        "losses", (json_int_t)call->lost);

    set_time(json, "duration_ns", "duration_min_ns", "duration_max_ns", call->duration);
    for (size_t i = 0; i < call->caller_count; i++)
        json_array_append_new(callers, cli_json_text(name_of(output, call->callers[i])));
    json_object_set_new(json, "callers", callers);
    json_object_set_new(json, "tree", call->node_count ? node_json(output, call, 0) : json_null());
    return json;
}

void slow_print_json(const struct slow_output *output)
{
    const struct slow_calls *calls = output->calls;
    json_t *array = json_array();

    for (size_t i = 0; i < calls->count; i++)
        json_array_append_new(array, call_json(output, &calls->calls[i]));
    AUTO_JSON json_t *document =
        json_pack("{s:I, s:o, s:o, s:I, s:I, s:I, s:o, s:o}", "run", (json_int_t)output->run->run_id, "name",
                  cli_json_text(output->run->name), "function", cli_json_text(output->function), "returned",
                  (json_int_t)calls->returned, "unreturned", (json_int_t)calls->unreturned, "untimed",
                  (json_int_t)calls->unknown, "calls", array, "completeness",
                  completeness_json(&output->completeness, 1));
    cli_json_print(document);
}
