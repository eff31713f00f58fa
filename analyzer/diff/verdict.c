/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/diff/verdict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

void diff_verdict_release(struct diff_verdict *verdict)
{
    for (size_t i = 0; i < verdict->group_count; i++)
        free(verdict->groups[i].threads);
    free(verdict->groups);
    renames_release(&verdict->renames);
    free(verdict->only_normal);
    free(verdict->only_faulty);
    free(verdict->calls);
    *verdict = (struct diff_verdict){0};
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
static bool is_renamed(const struct diff_verdict *verdict, const struct thread_diff *thread,
                       struct call_tally *tally)
{
    bool both;

    if (!verdict->renames.count || thread->hang_differs)
        return false;
    call_tally_thread(tally, verdict->loops, thread);
    if (!merge_renamed(&verdict->renames, tally, &both) || !both)
        return false;
    for (size_t i = 0; i < tally->count; i++)
        if (tally->counts[i].normal != tally->counts[i].faulty)
            return false;
    return true;
}

static int add_to_group(struct verdict_group *group, size_t thread)
{
    if (array_reserve(&group->threads, &group->capacity, group->count + 1))
        return -ENOMEM;
    group->threads[group->count++] = thread;
    return 0;
}

static int make_groups(struct diff_verdict *verdict, struct call_tally *tally)
{
    const struct run_comparison *comparison = verdict->comparison;

    verdict->groups = calloc(comparison->suspect_count + 1, sizeof(*verdict->groups));
    if (!verdict->groups)
        return -ENOMEM;
    for (size_t i = 0; i < comparison->suspect_count; i++) {
        const struct thread_diff *thread = &comparison->threads[comparison->suspects[i]];
        struct divergence divergence;
        size_t group = 0;
        int r = find_divergence(verdict->loops, thread, tally, &divergence);

        if (r)
            return r;
        if (is_renamed(verdict, thread, tally))
            divergence.kind = DIVERGENCE_RENAMED;
        while (group < verdict->group_count && !is_alike(&verdict->groups[group].divergence, &divergence))
            group++;
        if (group == verdict->group_count)
            verdict->groups[verdict->group_count++].divergence = divergence;
        r = add_to_group(&verdict->groups[group], comparison->suspects[i]);
        if (r)
            return r;
    }
    return 0;
}

static int keep_calls(struct diff_verdict *verdict, struct call_tally *tally)
{
    const struct run_comparison *comparison = verdict->comparison;
    size_t count = 0;
    bool both;

    if (!comparison->suspect_count)
        return 0;
    call_tally_thread(tally, verdict->loops, &comparison->threads[comparison->suspects[0]]);
    merge_renamed(&verdict->renames, tally, &both);
    call_tally_sort(tally);
    while (count < tally->count && tally->counts[count].normal != tally->counts[count].faulty)
        count++;
    verdict->calls = malloc((count + 1) * sizeof(*verdict->calls));
    if (!verdict->calls)
        return -ENOMEM;
    memcpy(verdict->calls, tally->counts, count * sizeof(*verdict->calls));
    verdict->call_count = count;
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

static int list_one_sided(struct diff_verdict *verdict)
{
    const struct function_facts *facts = verdict->facts;

    verdict->only_normal = malloc((facts->count + 1) * sizeof(*verdict->only_normal));
    verdict->only_faulty = malloc((facts->count + 1) * sizeof(*verdict->only_faulty));
    if (!verdict->only_normal || !verdict->only_faulty)
        return -ENOMEM;
    for (uint32_t symbol = 1; symbol < facts->count; symbol++) {
        const struct function_side *sides = facts->functions[symbol];

        if (sides[0].called == sides[1].called || is_in_rename(&verdict->renames, symbol))
            continue;
        if (sides[0].called)
            verdict->only_normal[verdict->only_normal_count++] = symbol;
        else
            verdict->only_faulty[verdict->only_faulty_count++] = symbol;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------ doubts */

static void add_loss(struct verdict_doubts *doubts, uint64_t events)
{
    doubts->lost_unknown |= !events;
    doubts->lost_events += events;
}

static void add_doubts_of_run(struct verdict_doubts *doubts, const struct run_loops *run)
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

static void find_doubts(struct diff_verdict *verdict)
{
    const struct run_comparison *comparison = verdict->comparison;
    struct verdict_doubts *doubts = &verdict->doubts;

    add_doubts_of_run(doubts, summary_run(verdict->loops, false));
    add_doubts_of_run(doubts, summary_run(verdict->loops, true));
    doubts->one_normal = verdict->loops->run_count == 2;
    for (size_t i = 0; i < comparison->count; i++) {
        const struct thread_diff *thread = &comparison->threads[i];

        doubts->unknown_threads += thread->unknown;
        if (thread->normal && thread->faulty && thread_diff_differs(thread))
            doubts->unknown_ends += thread->normal->last_call == LAST_CALL_UNKNOWN ||
                                    thread->faulty->last_call == LAST_CALL_UNKNOWN;
    }
}

/* ------------------------------------------------------------------------------------------ all of it */

static int fill(struct diff_verdict *verdict)
{
    CLEANUP(call_tally_release) struct call_tally tally = {0};
    int r = call_tally_init(&tally, verdict->loops);

    if (!r)
        r = find_renames(verdict->loops, verdict->facts, &verdict->renames);
    if (!r)
        r = make_groups(verdict, &tally);
    if (!r)
        r = keep_calls(verdict, &tally);
    if (!r)
        r = list_one_sided(verdict);
    find_doubts(verdict);
    return r;
}

int diff_verdict_make(const struct loop_summary *loops, const struct run_comparison *comparison,
                      const struct function_facts *facts, struct diff_verdict *ret_verdict)
{
    struct diff_verdict verdict = {.loops = loops, .comparison = comparison, .facts = facts};
    int r = fill(&verdict);

    if (r) {
        diff_verdict_release(&verdict);
        return r;
    }
    *ret_verdict = verdict;
    return 0;
}
