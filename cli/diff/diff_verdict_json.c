/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The keys "summary" and "pairs" of tracectl --json diff. */
#include <inttypes.h>

#include "analyzer/diff/compare_pair.h"
#include "cli/diff/diff_report.h"

/* ------------------------------------------------------------------------------------------ functions */

/* {"function", "file", "line"}, or null where nothing is called. */
static json_t *function_json(const struct diff_verdict *verdict, uint32_t symbol, bool faulty)
{
    const struct function_side *side = function_facts_side(verdict->facts, symbol, faulty);
    json_t *item;

    if (symbol == SYMBOL_DROPPED)
        return json_null();
    item = json_pack("{s:o}", "function", cli_json_text(symbols_name(&verdict->loops->symbols, symbol)));
    if (side->line && side->file) {
        json_object_set_new(item, "file", cli_json_text(side->file));
        json_object_set_new(item, "line", json_integer(side->line));
    }
    return item;
}

/* Functions that one run only calls, and whether the other program has them. */
static json_t *only_json(const struct diff_verdict *verdict, const uint32_t *symbols, size_t count,
                         bool faulty)
{
    static const char *const words[] = {
        [IN_PROGRAM_UNKNOWN] = "unknown", [IN_PROGRAM_NO] = "no", [IN_PROGRAM_YES] = "yes"};
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++) {
        json_t *item = function_json(verdict, symbols[i], faulty);
        const struct function_side *other = function_facts_side(verdict->facts, symbols[i], !faulty);

        json_object_set_new(item, "in_other_program", json_string(words[other->in_program]));
        json_array_append_new(array, item);
    }
    return array;
}

static json_t *renames_json(const struct diff_verdict *verdict)
{
    json_t *array = json_array();

    for (size_t i = 0; i < verdict->renames.count; i++) {
        const struct rename *rename = &verdict->renames.renames[i];

        json_array_append_new(array, json_pack("{s:o, s:o, s:f}", "normal",
                                               function_json(verdict, rename->normal, false), "faulty",
                                               function_json(verdict, rename->faulty, true), "likeness",
                                               rename->likeness));
    }
    return array;
}

/* ------------------------------------------------------------------------------------------ groups */

static json_t *loop_json(const struct diff_verdict *verdict, const struct divergence *place)
{
    char name[24];
    json_t *item;

    if (place->loop == NO_LOOP)
        return json_null();
    snprintf(name, sizeof(name), "L%" PRIu32, verdict->loops->table.numbers[place->loop]);
    item = json_pack("{s:s}", "loop", name);
    if (place->normal_count) {
        json_object_set_new(item, "normal", cli_json_count(place->normal_count));
        json_object_set_new(item, "faulty", cli_json_count(place->faulty_count));
    } else {
        json_object_set_new(item, "run", json_string(place->loop_is_faulty ? "faulty" : "normal"));
        json_object_set_new(item, "iteration", cli_json_count(place->iteration));
        json_object_set_new(item, "iterations", cli_json_count(place->iterations));
    }
    return item;
}

static json_t *group_json(const struct diff_verdict *verdict, const struct verdict_group *group)
{
    const struct divergence *place = &group->divergence;
    json_t *threads = json_array();

    for (size_t i = 0; i < group->count; i++)
        json_array_append_new(
            threads, cli_json_text(thread_diff_label(&verdict->comparison->threads[group->threads[i]])));
    return json_pack("{s:o, s:s, s:o, s:b, s:o, s:o, s:o, s:o}", "threads", threads, "kind",
                     divergence_kind_name(place->kind), "common_calls", cli_json_count(place->common),
                     "exact", place->exact, "last_common", function_json(verdict, place->last_common, true),
                     "normal_next", function_json(verdict, place->normal_next, false), "faulty_next",
                     function_json(verdict, place->faulty_next, true), "loop", loop_json(verdict, place));
}

static json_t *calls_json(const struct diff_verdict *verdict)
{
    json_t *array = json_array();

    for (size_t i = 0; i < verdict->call_count; i++) {
        const struct call_count *call = &verdict->calls[i];
        json_t *item = function_json(verdict, call->symbol, !call->normal);

        json_object_set_new(item, "normal", cli_json_count(call->normal));
        json_object_set_new(item, "faulty", cli_json_count(call->faulty));
        json_array_append_new(array, item);
    }
    return array;
}

static json_t *doubts_json(const struct verdict_doubts *doubts)
{
    return json_pack(
        "{s:I, s:I, s:o, s:b, s:I, s:I, s:b}", "unknown_threads", (json_int_t)doubts->unknown_threads,
        "unfinished_runs", (json_int_t)doubts->unfinished, "lost_events", cli_json_count(doubts->lost_events),
        "more_lost_events", doubts->lost_unknown, "blind_functions", (json_int_t)doubts->blind_functions,
        "unknown_last_calls", (json_int_t)doubts->unknown_ends, "one_normal_run", doubts->one_normal);
}

json_t *diff_summary_json(const struct diff_report *report)
{
    const struct diff_verdict *verdict = &report->verdict;
    AUTO_FREE char *text = diff_verdict_text(verdict, report->input->runs[0].name,
                                             report->input->runs[report->input->count - 1].name);
    json_t *groups = json_array();

    for (size_t i = 0; i < verdict->group_count; i++)
        json_array_append_new(groups, group_json(verdict, &verdict->groups[i]));
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "text", cli_json_text(text ? text : ""), "groups", groups,
        "calls", calls_json(verdict), "renamed", renames_json(verdict), "only_normal_functions",
        only_json(verdict, verdict->only_normal, verdict->only_normal_count, false), "only_faulty_functions",
        only_json(verdict, verdict->only_faulty, verdict->only_faulty_count, true), "doubts",
        doubts_json(&verdict->doubts));
}

/* ------------------------------------------------------------------------------------------ pairs */

static json_t *relation_json(const struct loop_summary *summary, const struct diff_pair *pair, bool faulty)
{
    static const char *const ops[] = {"common", "first", "second"};
    const struct pair_comparison *comparison = &pair->comparison;
    const struct nlr_sequence *first = &comparison->threads[faulty][0]->loops;
    const struct nlr_sequence *second = &comparison->threads[faulty][1]->loops;
    const struct diff_nlr *diff = &comparison->diffs[faulty];
    json_t *unknown = json_array();

    diff_unknown_json(summary, diff, first, second, pair->first, ops, unknown);
    return json_pack("{s:f, s:o, s:o}", "score", diff_nlr_share(diff), "edits",
                     diff_edits_json(summary, diff, first, second, ops), "unknown", unknown);
}

json_t *diff_pairs_json(const struct diff_report *report)
{
    const struct loop_summary *summary = &report->input->summary;
    json_t *array = json_array();

    for (size_t i = 0; i < report->pair_count; i++) {
        const struct diff_pair *pair = &report->pairs[i];

        json_array_append_new(array,
                              json_pack("{s:[o, o], s:b, s:o, s:o}", "threads", cli_json_text(pair->first),
                                        cli_json_text(pair->second), "changed", pair->comparison.changed,
                                        "normal", relation_json(summary, pair, false), "faulty",
                                        relation_json(summary, pair, true)));
    }
    return array;
}
