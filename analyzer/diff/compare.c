/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/diff/compare.h"

#include <errno.h>
#include <stdlib.h>

void run_comparison_release(struct run_comparison *comparison)
{
    for (size_t i = 0; i < comparison->count; i++)
        diff_nlr_release(&comparison->threads[i].diff);
    free(comparison->threads);
    free(comparison->suspects);
    *comparison = (struct run_comparison){0};
}

uint32_t last_symbol(const struct loop_table *table, const struct nlr_sequence *sequence)
{
    const struct nlr_element *last;

    if (!sequence->count)
        return SYMBOL_DROPPED;
    last = &sequence->elements[sequence->count - 1];
    while (last->kind == NLR_LOOP)
        last = loop_table_elements(table, last->id) + table->bodies[last->id].length - 1;
    return last->kind == NLR_SYMBOL ? last->id : SYMBOL_DROPPED;
}

/* A thread that one run lacks is a difference, unless that run may have lost it. */
static bool may_lack_thread(const struct run_loops *run)
{
    return run->unfinished || run->incomplete;
}

static double element_events(const struct loop_table *table, const struct nlr_element *element)
{
    return (double)nlr_events(table, element, 1);
}

/* Events in the changed blocks of both sides, as a share of all events of both. Of two loops that are the
 * same only the iterations count that one has more than the other. */
static double changed_events(const struct loop_table *table, const struct thread_diff *thread)
{
    const struct nlr_sequence *normal = &thread->normal->loops, *faulty = &thread->faulty->loops;
    double changed = 0, all = (double)nlr_events(table, normal->elements, normal->count) +
                              (double)nlr_events(table, faulty->elements, faulty->count);

    for (size_t i = 0; i < thread->diff.edit_count; i++) {
        const struct diff_edit *edit = &thread->diff.edits[i];

        if (edit->op == DIFF_NORMAL)
            changed += (double)nlr_events(table, normal->elements + edit->normal, edit->normal_count);
        else if (edit->op == DIFF_FAULTY)
            changed += (double)nlr_events(table, faulty->elements + edit->faulty, edit->faulty_count);
    }
    for (size_t i = 0; i < thread->diff.loop_count; i++) {
        const struct diff_loop *loop = &thread->diff.loops[i];
        double a = element_events(table, &normal->elements[loop->normal]);
        double b = element_events(table, &faulty->elements[loop->faulty]);

        if (loop->same)
            changed -= 2 * (a < b ? a : b);
    }
    return all > 0 ? changed / all : 0;
}

static int compare_thread(const struct loop_summary *summary, struct thread_diff *thread)
{
    const struct thread_loops *normal = thread->normal, *faulty = thread->faulty;
    int r;

    if (!normal || !faulty) {
        thread->unknown = may_lack_thread(summary_run(summary, normal));
        return 0;
    }
    r = diff_nlr(&summary->table, &(struct diff_side){&normal->loops, normal->incomplete},
                 &(struct diff_side){&faulty->loops, faulty->incomplete}, &thread->diff);
    if (r < 0)
        return r;
    thread->unknown = thread->diff.unknown;
    thread->hang_differs = normal->last_call != faulty->last_call && normal->last_call != LAST_CALL_UNKNOWN &&
                           faulty->last_call != LAST_CALL_UNKNOWN;
    if (thread_diff_differs(thread)) {
        size_t changed = thread->diff.changed + thread->hang_differs;
        size_t compared = thread->diff.compared > changed ? thread->diff.compared : changed;

        thread->score = thread->share = (double)changed / (double)compared;
        thread->event_share = changed_events(&summary->table, thread);
    }
    return 0;
}

/* Highest score first; equal threads in order of their labels, which qsort does not keep by itself. */
static int compare_suspects(const void *a, const void *b, void *context)
{
    const struct thread_diff *threads = context;
    size_t x = *(const size_t *)a, y = *(const size_t *)b;

    if (threads[x].score != threads[y].score)
        return threads[x].score > threads[y].score ? -1 : 1;
    if (threads[x].share != threads[y].share)
        return threads[x].share > threads[y].share ? -1 : 1;
    if (threads[x].event_share != threads[y].event_share)
        return threads[x].event_share > threads[y].event_share ? -1 : 1;
    return x < y ? -1 : x > y;
}

void run_comparison_sort(struct run_comparison *comparison)
{
    qsort_r(comparison->suspects, comparison->suspect_count, sizeof(*comparison->suspects), compare_suspects,
            comparison->threads);
}

static void find_suspects(struct run_comparison *comparison)
{
    for (size_t i = 0; i < comparison->count; i++) {
        const struct thread_diff *thread = &comparison->threads[i];

        if (!thread->normal || !thread->faulty)
            comparison->one_sided += !thread->unknown;
        else if (thread_diff_differs(thread))
            comparison->suspects[comparison->suspect_count++] = i;
    }
    run_comparison_sort(comparison);
}

/* Both runs have their threads in the order of their keys. */
static int match_threads(const struct loop_summary *summary, struct run_comparison *comparison)
{
    const struct run_loops *normal = summary_run(summary, false), *faulty = summary_run(summary, true);
    size_t i = 0, j = 0;

    while (i < normal->thread_count || j < faulty->thread_count) {
        struct thread_diff *thread = &comparison->threads[comparison->count];
        int order = i == normal->thread_count   ? 1
                    : j == faulty->thread_count ? -1
                                                : thread_label_compare(thread_key(&normal->threads[i]),
                                                                       thread_key(&faulty->threads[j]));
        int r;

        if (order <= 0)
            thread->normal = &normal->threads[i++];
        if (order >= 0)
            thread->faulty = &faulty->threads[j++];
        comparison->count++;
        r = compare_thread(summary, thread);
        if (r < 0)
            return r;
    }
    return 0;
}

int compare_runs(const struct loop_summary *summary, struct run_comparison *ret_comparison)
{
    size_t most = summary_run(summary, false)->thread_count + summary_run(summary, true)->thread_count + 1;
    struct run_comparison comparison = {
        .threads = calloc(most, sizeof(*comparison.threads)),
        .suspects = calloc(most, sizeof(*comparison.suspects)),
    };
    int r = comparison.threads && comparison.suspects ? match_threads(summary, &comparison) : -ENOMEM;

    if (r < 0) {
        run_comparison_release(&comparison);
        return r;
    }
    find_suspects(&comparison);
    *ret_comparison = comparison;
    return 0;
}
