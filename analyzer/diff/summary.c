/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/diff/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

void diff_summary_release(struct diff_summary *summary)
{
    for (size_t i = 0; i < summary->group_count; i++)
        free(summary->groups[i].threads);
    free(summary->groups);
    renames_release(&summary->renames);
    free(summary->only_normal);
    free(summary->only_faulty);
    free(summary->calls);
    *summary = (struct diff_summary){0};
}

/* ------------------------------------------------------------------------------------------ groups */

/* Of threads that stop it counts where they did; how far they still had to go does not. */
static bool is_alike(const struct divergence *a, const struct divergence *b)
{
    if (a->kind != b->kind || a->stuck != b->stuck)
        return false;
    if (a->stuck != SYMBOL_DROPPED)
        return true;
    if (a->last_common != b->last_common)
        return false;
    return a->kind == DIVERGENCE_STOPS ||
           (a->normal_next == b->normal_next && a->faulty_next == b->faulty_next && a->loop == b->loop &&
            a->exact == b->exact);
}

/* Counts calls of a renamed function under its new name. Returns whether there are any; *ret_both is whether
 * each one that is there occurs under both names. */
static bool merge_renamed(const struct renames *renames, struct call_tally *tally, bool *ret_both)
{
    bool renamed = false;

    *ret_both = true;
    for (size_t i = 0; i < renames->count; i++) {
        uint32_t old = tally->slots[renames->renames[i].normal],
                 new = tally->slots[renames->renames[i].faulty];

        *ret_both &= !old == !new;
        if (!old || !new)
            continue;
        tally->counts[new - 1].normal = tally->counts[old - 1].normal;
        tally->counts[old - 1].normal = 0;
        renamed = true;
    }
    return renamed;
}

/* Nothing but renamed functions: as many calls of each, when both names are taken for one. */
static bool is_renamed(const struct diff_summary *summary, const struct thread_diff *thread,
                       struct call_tally *tally)
{
    bool both;

    if (!summary->renames.count || thread->hang_differs)
        return false;
    call_tally_thread(tally, summary->loops, thread);
    if (!merge_renamed(&summary->renames, tally, &both) || !both)
        return false;
    for (size_t i = 0; i < tally->count; i++)
        if (tally->counts[i].normal != tally->counts[i].faulty)
            return false;
    return true;
}

static int add_to_group(struct summary_group *group, size_t thread)
{
    if (array_reserve(&group->threads, &group->capacity, group->count + 1))
        return -ENOMEM;
    group->threads[group->count++] = thread;
    return 0;
}

static int make_groups(struct diff_summary *summary, struct call_tally *tally)
{
    const struct run_comparison *comparison = summary->comparison;

    summary->groups = calloc(comparison->suspect_count + 1, sizeof(*summary->groups));
    if (!summary->groups)
        return -ENOMEM;
    for (size_t i = 0; i < comparison->suspect_count; i++) {
        const struct thread_diff *thread = &comparison->threads[comparison->suspects[i]];
        struct divergence divergence;
        size_t group = 0;
        int r = find_divergence(summary->loops, thread, tally, &divergence);

        if (r)
            return r;
        if (is_renamed(summary, thread, tally))
            divergence.kind = DIVERGENCE_RENAMED;
        while (group < summary->group_count && !is_alike(&summary->groups[group].divergence, &divergence))
            group++;
        if (group == summary->group_count)
            summary->groups[summary->group_count++].divergence = divergence;
        r = add_to_group(&summary->groups[group], comparison->suspects[i]);
        if (r)
            return r;
    }
    return 0;
}

static int keep_calls(struct diff_summary *summary, struct call_tally *tally)
{
    const struct run_comparison *comparison = summary->comparison;
    size_t count = 0;
    bool both;

    if (!comparison->suspect_count)
        return 0;
    call_tally_thread(tally, summary->loops, &comparison->threads[comparison->suspects[0]]);
    merge_renamed(&summary->renames, tally, &both);
    call_tally_sort(tally);
    while (count < tally->count && tally->counts[count].normal != tally->counts[count].faulty)
        count++;
    summary->calls = malloc((count + 1) * sizeof(*summary->calls));
    if (!summary->calls)
        return -ENOMEM;
    memcpy(summary->calls, tally->counts, count * sizeof(*summary->calls));
    summary->call_count = count;
    return 0;
}

/* ------------------------------------------------------------------------------------------ functions */

static bool is_in_rename(const struct renames *renames, uint32_t symbol)
{
    for (size_t i = 0; i < renames->count; i++)
        if (renames->renames[i].normal == symbol || renames->renames[i].faulty == symbol)
            return true;
    return false;
}

static int list_one_sided(struct diff_summary *summary)
{
    const struct function_facts *facts = summary->facts;

    summary->only_normal = malloc((facts->count + 1) * sizeof(*summary->only_normal));
    summary->only_faulty = malloc((facts->count + 1) * sizeof(*summary->only_faulty));
    if (!summary->only_normal || !summary->only_faulty)
        return -ENOMEM;
    for (uint32_t symbol = 1; symbol < facts->count; symbol++) {
        const struct function_side *sides = facts->functions[symbol];

        if (sides[0].called == sides[1].called || is_in_rename(&summary->renames, symbol))
            continue;
        if (sides[0].called)
            summary->only_normal[summary->only_normal_count++] = symbol;
        else
            summary->only_faulty[summary->only_faulty_count++] = symbol;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------ doubts */

static void add_loss(struct summary_doubts *doubts, uint64_t events)
{
    doubts->lost_unknown |= !events;
    doubts->lost_events += events;
}

static void add_doubts_of_run(struct summary_doubts *doubts, const struct run_loops *run)
{
    static const char unfinished[] = "unfinished";

    doubts->unfinished += run->unfinished;
    for (size_t i = 0; i < run->blind_count; i++)
        doubts->blind_functions += !i || strcmp(run->blind[i].name, run->blind[i - 1].name) != 0;
    for (size_t i = 0; i < run->loss_count; i++)
        add_loss(doubts, run->losses[i].events);
    for (size_t i = 0; i < run->thread_count; i++)
        for (size_t gap = 0; gap < run->threads[i].gap_count; gap++)
            if (strcmp(run->threads[i].gaps[gap].cause, unfinished) != 0)
                add_loss(doubts, run->threads[i].gaps[gap].events);
}

static void find_doubts(struct diff_summary *summary)
{
    const struct run_comparison *comparison = summary->comparison;
    struct summary_doubts *doubts = &summary->doubts;

    add_doubts_of_run(doubts, summary_run(summary->loops, false));
    add_doubts_of_run(doubts, summary_run(summary->loops, true));
    doubts->one_normal = summary->loops->run_count == 2;
    for (size_t i = 0; i < comparison->count; i++) {
        const struct thread_diff *thread = &comparison->threads[i];

        doubts->unknown_threads += thread->unknown;
        if (thread->normal && thread->faulty && thread_diff_differs(thread))
            doubts->unknown_ends += thread->normal->last_call == LAST_CALL_UNKNOWN ||
                                    thread->faulty->last_call == LAST_CALL_UNKNOWN;
    }
}

/* ------------------------------------------------------------------------------------------ all of it */

static int fill(struct diff_summary *summary)
{
    CLEANUP(call_tally_release) struct call_tally tally = {0};
    int r = call_tally_init(&tally, summary->loops);

    if (!r)
        r = find_renames(summary->loops, summary->facts, &summary->renames);
    if (!r)
        r = make_groups(summary, &tally);
    if (!r)
        r = keep_calls(summary, &tally);
    if (!r)
        r = list_one_sided(summary);
    find_doubts(summary);
    return r;
}

int diff_summary_make(const struct loop_summary *loops, const struct run_comparison *comparison,
                      const struct function_facts *facts, struct diff_summary *ret_summary)
{
    struct diff_summary summary = {.loops = loops, .comparison = comparison, .facts = facts};
    int r = fill(&summary);

    if (r) {
        diff_summary_release(&summary);
        return r;
    }
    *ret_summary = summary;
    return 0;
}
