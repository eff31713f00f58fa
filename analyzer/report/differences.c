/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* diffNLR of the threads that changed most. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/picture/diff_picture.h"
#include "analyzer/picture/folded_names.h"
#include "analyzer/report/parts.h"
#include "base/cleanup.h"
#include "base/error.h"

enum { MOST_DRAWN = 5, MOST_ENTRIES = 60, MOST_RANGES = 8 };

#define PICTURE_MARGIN 10.0

/* Threads of the comparison with the same two summaries. */
struct alike {
    size_t first; /* in the comparison */
    uint32_t *threads;
    size_t count;
};

/* ------------------------------------------------------------------------------------------ the choice */

static bool same_loops(const struct thread_loops *a, const struct thread_loops *b)
{
    return a->loops.count == b->loops.count && a->last_call == b->last_call &&
           (!a->loops.count || nlr_same(a->loops.elements, b->loops.elements, a->loops.count));
}

static bool same_difference(const struct thread_diff *a, const struct thread_diff *b)
{
    return same_loops(a->normal, b->normal) && same_loops(a->faulty, b->faulty);
}

static bool is_reported(const struct report *report, const struct alike *reported, size_t count,
                        size_t thread)
{
    const struct thread_diff *threads = report->comparison.threads;

    for (size_t i = 0; i < count; i++)
        if (same_difference(&threads[reported[i].first], &threads[thread]))
            return true;
    return false;
}

static size_t find_label(const struct run_comparison *comparison, const char *label)
{
    size_t low = 0, high = comparison->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct thread_diff *thread = &comparison->threads[middle];
        const struct thread_loops *side = thread->normal ? thread->normal : thread->faulty;
        int order = thread_label_compare(thread_key(side), label);

        if (!order)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return SIZE_MAX;
}

/* Adds a thread that differs, unless one like it is there. */
static void add(const struct report *report, struct alike *reported, size_t *count, size_t thread)
{
    const struct thread_diff *diff;

    if (thread == SIZE_MAX || *count == MOST_DRAWN)
        return;
    diff = &report->comparison.threads[thread];
    if (diff->normal && diff->faulty && thread_diff_differs(diff) &&
        !is_reported(report, reported, *count, thread))
        reported[(*count)++].first = thread;
}

/* The suspects of the ranking first, then those of the comparison. */
static size_t choose(const struct report *report, struct alike *reported)
{
    const struct ranking_objects *ranked = &report->input->ranking->threads;
    size_t count = 0;

    for (size_t i = 0; i < report->input->suspects; i++)
        add(report, reported, &count,
            find_label(&report->comparison, ranked->labels[ranked->consensus[i].object]));
    for (size_t i = 0; i < report->comparison.suspect_count; i++)
        add(report, reported, &count, report->comparison.suspects[i]);
    return count;
}

/* All threads of the comparison that are like the first. */
static int find_alike(const struct report *report, struct alike *alike)
{
    const struct run_comparison *comparison = &report->comparison;
    const struct thread_diff *first = &comparison->threads[alike->first];

    alike->threads = calloc(comparison->suspect_count + 1, sizeof(*alike->threads));
    if (!alike->threads)
        return -ENOMEM;
    for (size_t i = 0; i < comparison->suspect_count; i++)
        if (same_difference(first, &comparison->threads[comparison->suspects[i]]))
            alike->threads[alike->count++] = (uint32_t)comparison->suspects[i];
    folded_sort(alike->threads, alike->count);
    return 0;
}

/* ------------------------------------------------------------------------------------------ the pictures */

/* The difference up to so many entries; the edits are borrowed but for the last, which is cut. Returns the
 * entries that are left out. */
static size_t shorten(const struct diff_nlr *diff, struct diff_edit *edits, struct diff_nlr *ret_short)
{
    size_t room = MOST_ENTRIES, left_out = 0, normal = 0, faulty = 0;

    *ret_short = *diff;
    ret_short->edits = edits;
    ret_short->edit_count = ret_short->loop_count = 0;
    for (size_t i = 0; i < diff->edit_count; i++) {
        struct diff_edit edit = diff->edits[i];
        size_t entries = edit.normal_count > edit.faulty_count ? edit.normal_count : edit.faulty_count;

        if (!room) {
            left_out += entries;
            continue;
        }
        /* Of a long common edit next to nothing is drawn. */
        if (edit.op != DIFF_COMMON && entries > room) {
            left_out += entries - room;
            edit.normal_count = edit.normal_count < room ? edit.normal_count : room;
            edit.faulty_count = edit.faulty_count < room ? edit.faulty_count : room;
            entries = room;
        }
        room -= edit.op == DIFF_COMMON ? (room < 3 ? room : 3) : entries;
        normal = edit.normal + edit.normal_count;
        faulty = edit.faulty + edit.faulty_count;
        edits[ret_short->edit_count++] = edit;
    }
    while (ret_short->loop_count < diff->loop_count && diff->loops[ret_short->loop_count].normal < normal &&
           diff->loops[ret_short->loop_count].faulty < faulty)
        ret_short->loop_count++;
    return left_out;
}

/* The loops among these entries, and those inside them, belong into the loop table. */
static void mention(struct report *report, const struct nlr_element *elements, size_t count)
{
    const struct loop_table *table = &report->input->summary->table;

    for (size_t i = 0; i < count; i++) {
        uint32_t id = elements[i].id;

        if (elements[i].kind != NLR_LOOP || report->mentioned[table->numbers[id]])
            continue;
        report->mentioned[table->numbers[id]] = true;
        mention(report, loop_table_elements(table, id), table->bodies[id].length);
    }
}

/* All but what common edits leave out. */
static void mention_drawn(struct report *report, const struct thread_diff *thread)
{
    for (size_t i = 0; i < thread->diff.edit_count; i++) {
        const struct diff_edit *edit = &thread->diff.edits[i];

        if (edit->op == DIFF_COMMON && edit->normal_count > MOST_ENTRIES)
            continue;
        mention(report, thread->normal->loops.elements + edit->normal, edit->normal_count);
        mention(report, thread->faulty->loops.elements + edit->faulty, edit->faulty_count);
    }
}

static char *draw(const struct report *report, const struct thread_diff *thread, const char *title)
{
    struct svg *svg = svg_new();
    struct svg_point size = {0, 0};
    int r;

    diff_picture_prepare(svg);
    r = diff_picture_draw(svg, (struct svg_point){PICTURE_MARGIN, PICTURE_MARGIN + 16},
                          report->input->summary, thread, false, &size);
    if (r < 0) {
        svg_free(svg);
        return NULL;
    }
    svg_text(svg, (struct svg_point){PICTURE_MARGIN, PICTURE_MARGIN + 4}, "baseline run",
             &(struct svg_font){.bold = true});
    svg_text(svg, (struct svg_point){PICTURE_MARGIN + size.x, PICTURE_MARGIN + 4}, "candidate run",
             &(struct svg_font){.bold = true, .anchor = SVG_END});
    return svg_finish(svg, size.x + 2 * PICTURE_MARGIN, size.y + 2 * PICTURE_MARGIN + 16, title,
                      "The stem in the middle shows the calls of both runs; on the left are calls of "
                      "the baseline run only, on the right calls of the candidate run only.",
                      SVG_INLINE);
}

static int print_difference(struct report *report, const struct alike *alike, struct error *err)
{
    const struct run_comparison *comparison = &report->comparison;
    struct thread_diff thread = comparison->threads[alike->first];
    const struct diff_nlr whole = thread.diff;
    AUTO_FREE struct diff_edit *edits = calloc(whole.edit_count + 1, sizeof(*edits));
    AUTO_FREE const char **labels = calloc(comparison->count + 1, sizeof(*labels));
    AUTO_FREE char *words = thread_diff_words(report->input->summary, &thread);
    AUTO_FREE char *names = NULL, *svg = NULL;
    size_t left_out;

    if (!edits || !labels || !words)
        return error_no_memory(err);
    for (size_t i = 0; i < comparison->count; i++)
        labels[i] = thread_diff_label(&comparison->threads[i]);
    names = folded_ranges(labels, alike->threads, alike->count, MOST_RANGES);
    left_out = shorten(&whole, edits, &thread.diff);
    mention_drawn(report, &thread);
    svg = names ? draw(report, &thread, names) : NULL;
    if (!svg)
        return error_no_memory(err);
    html_subheading(report->out, "Thread%s %s", alike->count == 1 ? "" : "s", names);
    html_figure(report->out, svg, "%s.", words);
    if (left_out)
        html_paragraph(report->out, "note",
                       "%zu more entries are omitted: tracectl diff with the thread's name prints them.",
                       left_out);
    return 0;
}

int report_differences(struct report *report, struct error *err)
{
    struct alike reported[MOST_DRAWN] = {{0}};
    size_t count = choose(report, reported), shown = 0;
    int r = 0;

    if (!count) {
        html_paragraph(report->out, NULL, "No thread differs in the part that can be compared.");
        return 0;
    }
    html_paragraph(
        report->out, NULL,
        "The loop summaries of a thread in both runs: = in both, \xe2\x88\x92 only in the baseline run, "
        "+ only in the candidate run, ? events are missing. L1 ^ 16 is loop L1 of the table below, 16 "
        "times. Filter %s, K = %u.",
        report->input->filter ? report->input->filter : "everything", report->input->max_body);
    for (size_t i = 0; i < count && r == 0; i++) {
        r = find_alike(report, &reported[i]) < 0 ? error_no_memory(err)
                                                 : print_difference(report, &reported[i], err);
        shown += reported[i].count;
        free(reported[i].threads);
    }
    if (r == 0 && shown < report->comparison.suspect_count)
        html_paragraph(report->out, "note", "Omitted: %zu more threads that differ.",
                       report->comparison.suspect_count - shown);
    return r;
}
