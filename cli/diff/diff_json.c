/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl --json diff. */
#include <inttypes.h>

#include "cli/diff/diff_functions.h"
#include "cli/diff/diff_report.h"

static const char *const sides[] = {"normal", "faulty"};
static const char *const ops[] = {"common", "normal", "faulty"};

/* ------------------------------------------------------------------------------------------ edits */

static json_t *stretch_json(const struct loop_summary *summary, const struct nlr_sequence *sequence,
                            size_t first, size_t count)
{
    return cli_loops_entries(summary, sequence->elements + first, count);
}

json_t *diff_edits_json(const struct loop_summary *summary, const struct diff_nlr *diff,
                        const struct nlr_sequence *normal, const struct nlr_sequence *faulty,
                        const char *const words[3])
{
    json_t *edits = json_array();

    for (size_t i = 0; i < diff->edit_count; i++) {
        const struct diff_edit *edit = &diff->edits[i];
        bool right = edit->op == DIFF_FAULTY;

        if (edit->op == DIFF_UNKNOWN)
            continue;
        json_array_append_new(
            edits, json_pack("{s:s, s:o}", "op", words[edit->op], "entries",
                             right ? stretch_json(summary, faulty, edit->faulty, edit->faulty_count)
                                   : stretch_json(summary, normal, edit->normal, edit->normal_count)));
    }
    return edits;
}

void diff_unknown_json(const struct loop_summary *summary, const struct diff_nlr *diff,
                       const struct nlr_sequence *normal, const struct nlr_sequence *faulty,
                       const char *thread, const char *const words[3], json_t *array)
{
    size_t before = 0;

    for (size_t i = 0; i < diff->edit_count; i++) {
        const struct diff_edit *edit = &diff->edits[i];

        if (edit->op != DIFF_UNKNOWN) {
            before++;
            continue;
        }
        json_array_append_new(
            array,
            json_pack("{s:s, s:o, s:I, s:o, s:o}", "kind", "stretch", "thread", cli_json_text(thread),
                      "after_edits", (json_int_t)before, words[DIFF_NORMAL],
                      stretch_json(summary, normal, edit->normal, edit->normal_count), words[DIFF_FAULTY],
                      stretch_json(summary, faulty, edit->faulty, edit->faulty_count)));
    }
}

/* ------------------------------------------------------------------------------------------ loops */

static json_t *loop_name(const struct loop_table *table, uint32_t id)
{
    char name[24];

    snprintf(name, sizeof(name), "L%" PRIu32, table->numbers[id]);
    return json_string(name);
}

static json_t *same_loops_json(const struct loop_table *table, const struct thread_diff *thread)
{
    json_t *array = json_array();

    for (size_t i = 0; i < thread->diff.loop_count; i++) {
        const struct nlr_element *normal = &thread->normal->loops.elements[thread->diff.loops[i].normal];
        const struct nlr_element *faulty = &thread->faulty->loops.elements[thread->diff.loops[i].faulty];

        if (thread->diff.loops[i].same)
            json_array_append_new(array, json_pack("{s:o, s:o, s:o}", "loop", loop_name(table, normal->id),
                                                   "normal", cli_json_count(normal->count), "faulty",
                                                   cli_json_count(faulty->count)));
    }
    return array;
}

static json_t *entry_json(const struct loop_summary *summary, const struct nlr_sequence *sequence, size_t at)
{
    AUTO_JSON json_t *entries = stretch_json(summary, sequence, at, 1);

    return json_incref(json_array_get(entries, 0));
}

/* Loops of other bodies, and with --descend how the bodies differ, and the loops in them. */
static json_t *similar_loops_json(const struct diff_report *report, const struct nlr_sequence *normal,
                                  const struct nlr_sequence *faulty, const struct diff_nlr *diff)
{
    const struct loop_summary *summary = &report->input->summary;
    json_t *array = json_array();

    for (size_t i = 0; i < diff->loop_count; i++) {
        const struct diff_loop *loop = &diff->loops[i];
        uint32_t left = normal->elements[loop->normal].id, right = faulty->elements[loop->faulty].id;
        struct nlr_sequence left_body = loop_body_sequence(&summary->table, left),
                            right_body = loop_body_sequence(&summary->table, right);
        CLEANUP(diff_nlr_release) struct diff_nlr inner = {0};
        json_t *item;

        if (loop->same)
            continue;
        item = json_pack("{s:o, s:o, s:f}", "normal", entry_json(summary, normal, loop->normal), "faulty",
                         entry_json(summary, faulty, loop->faulty), "similarity", loop->similarity);
        if (report->arguments->descend && !diff_nlr_bodies(&summary->table, left, right, &inner)) {
            json_object_set_new(item, "edits",
                                diff_edits_json(summary, &inner, &left_body, &right_body, ops));
            json_object_set_new(item, "similar_loops",
                                similar_loops_json(report, &left_body, &right_body, &inner));
        }
        json_array_append_new(array, item);
    }
    return array;
}

/* ------------------------------------------------------------------------------------------ threads */

static json_t *one_sided_thread_json(const struct diff_report *report, const struct thread_diff *thread)
{
    const struct thread_loops *only = thread->normal ? thread->normal : thread->faulty;
    const char *side = sides[!thread->normal];
    json_t *edits = json_array();

    if (!thread->unknown)
        json_array_append_new(
            edits, json_pack("{s:s, s:o}", "op", side, "entries",
                             stretch_json(&report->input->summary, &only->loops, 0, only->loops.count)));
    return json_pack("{s:o, s:s, s:o}", "thread", cli_json_text(only->label), "only", side, "edits", edits);
}

static json_t *thread_json(const struct diff_report *report, const struct thread_diff *thread)
{
    const struct loop_summary *summary = &report->input->summary;
    json_t *item;

    if (!thread->normal || !thread->faulty)
        return one_sided_thread_json(report, thread);
    item = json_pack(
        "{s:o, s:o, s:f, s:f, s:o, s:o, s:{s:s, s:s}}", "thread", cli_json_text(thread_diff_label(thread)),
        "edits", diff_edits_json(summary, &thread->diff, &thread->normal->loops, &thread->faulty->loops, ops),
        "score", thread->score, "changed", thread->share, "same_loops",
        same_loops_json(&summary->table, thread), "similar_loops",
        similar_loops_json(report, &thread->normal->loops, &thread->faulty->loops, &thread->diff),
        "last_call", "normal", cli_loops_last_call(thread->normal->last_call), "faulty",
        cli_loops_last_call(thread->faulty->last_call));
    if (thread_diff_differs(thread)) {
        AUTO_FREE char *words = thread_diff_words(summary, thread);

        json_object_set_new(item, "words", cli_json_text(words ? words : ""));
    }
    return item;
}

static json_t *suspects_json(const struct run_comparison *comparison)
{
    json_t *array = json_array();

    for (size_t i = 0; i < comparison->suspect_count; i++) {
        const struct thread_diff *thread = &comparison->threads[comparison->suspects[i]];

        json_array_append_new(array,
                              json_pack("{s:o, s:f, s:f}", "thread", cli_json_text(thread_diff_label(thread)),
                                        "score", thread->score, "changed", thread->share));
    }
    return array;
}

static json_t *unknown_json(const struct diff_report *report)
{
    const struct loop_summary *summary = &report->input->summary;
    json_t *array = json_array();

    for (int side = 0; side < 2; side++) {
        const struct run_loops *run = summary_run(summary, side);

        cli_loops_json_gaps(run, sides[side], array);
        for (size_t i = 0; i < run->thread_count; i++)
            for (size_t gap = 0; gap < run->threads[i].gap_count; gap++)
                json_array_append_new(array, cli_loops_json_gap(run->threads[i].label, sides[side],
                                                                &run->threads[i].gaps[gap]));
    }
    for (size_t i = 0; i < report->comparison.count; i++) {
        const struct thread_diff *thread = &report->comparison.threads[i];

        if (thread->normal && thread->faulty)
            diff_unknown_json(summary, &thread->diff, &thread->normal->loops, &thread->faulty->loops,
                              thread_diff_label(thread), ops, array);
    }
    return array;
}

static json_t *one_sided_json(const struct run_comparison *comparison, bool normal)
{
    json_t *array = json_array();

    for (size_t i = 0; i < comparison->count; i++) {
        const struct thread_diff *thread = &comparison->threads[i];
        const struct thread_loops *one = normal ? thread->normal : thread->faulty;
        const struct thread_loops *other = normal ? thread->faulty : thread->normal;

        if (one && !other)
            json_array_append_new(array, cli_json_text(one->label));
    }
    return array;
}

void diff_print_json(const struct diff_report *report)
{
    const struct loop_summary *summary = &report->input->summary;
    AUTO_JSON json_t *document = json_object();
    json_t *diffs = json_array();

    json_object_set_new(document, "normal", json_integer(summary_run(summary, false)->run_id));
    json_object_set_new(document, "faulty", json_integer(summary_run(summary, true)->run_id));
    json_object_set_new(document, "summary", diff_summary_json(report));
    json_object_set_new(document, "timed", json_boolean(report->functions.timed));
    json_object_set_new(document, "functions",
                        diff_functions_json(&report->functions, report->functions.changed));
    json_object_set_new(document, "suspects", suspects_json(&report->comparison));
    json_object_set_new(document, "diffs", diffs);
    for (size_t i = 0; i < report->shown_count; i++)
        json_array_append_new(diffs, thread_json(report, diff_shown(report, i)));
    if (report->pair_count)
        json_object_set_new(document, "pairs", diff_pairs_json(report));
    json_object_set_new(document, "loops", cli_loops_legend(summary));
    json_object_set_new(document, "unknown", unknown_json(report));
    json_object_set_new(document, "completeness",
                        completeness_json(report->input->completeness, report->input->count));
    json_object_set_new(document, "only_normal", one_sided_json(&report->comparison, true));
    json_object_set_new(document, "only_faulty", one_sided_json(&report->comparison, false));
    cli_json_print(document);
}
