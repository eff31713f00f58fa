/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The suspects of a comparison in the order of a ranking. */
#include "analyzer/diff/compare_rank.h"

#include <math.h>
#include <string.h>

#include "analyzer/diff/compare.h"
#include "analyzer/ranking/ranking.h"

/* Both have their threads in the order of their keys, and a ranking's labels are the normal run's. */
static void take_scores(struct run_comparison *comparison, const struct ranking *ranking)
{
    const struct ranking_objects *ranked = &ranking->threads;

    for (size_t i = 0; i < comparison->count; i++)
        comparison->threads[i].score = 0;
    for (size_t place = 0; place < ranked->count; place++) {
        const char *label = ranked->labels[ranked->consensus[place].object];

        for (size_t low = 0, high = comparison->count; low < high;) {
            size_t middle = low + (high - low) / 2;
            struct thread_diff *thread = &comparison->threads[middle];
            int order =
                thread_label_compare(label, thread_key(thread->normal ? thread->normal : thread->faulty));

            if (!order) {
                thread->ranked = true;
                thread->score = ranked->consensus[place].score;
            }
            if (order > 0)
                low = middle + 1;
            else
                high = order ? middle : low;
        }
    }
}

/* Why a thread has no score, as the ranking says. */
static bool left_out(const struct ranking *ranking, const struct thread_diff *thread, enum unranked_why why)
{
    for (size_t i = 0; i < ranking->unranked_count; i++)
        if (ranking->unranked[i].why == why && !strcmp(ranking->unranked[i].label, thread_diff_label(thread)))
            return true;
    return false;
}

static void drop_usual(struct run_comparison *comparison, const struct ranking *ranking)
{
    size_t kept = 0, notable = ranking_suspects(&ranking->threads);
    double least = notable ? ranking->threads.consensus[notable - 1].score : INFINITY;

    for (size_t i = 0; i < comparison->suspect_count; i++) {
        const struct thread_diff *thread = &comparison->threads[comparison->suspects[i]];

        if (thread->ranked ? thread->score < least : left_out(ranking, thread, UNRANKED_VARIES))
            comparison->usual++;
        else if (!thread->ranked && left_out(ranking, thread, UNRANKED_NO_RANK))
            comparison->aside++;
        else
            comparison->suspects[kept++] = comparison->suspects[i];
    }
    comparison->suspect_count = kept;
    for (size_t i = 0; i < comparison->count; i++) {
        const struct thread_diff *thread = &comparison->threads[i];

        if ((!thread->normal || !thread->faulty) && !thread->unknown &&
            left_out(ranking, thread, UNRANKED_VARIES))
            comparison->one_sided--;
    }
}

void run_comparison_rank(struct run_comparison *comparison, const struct ranking *ranking, size_t normal_runs)
{
    take_scores(comparison, ranking);
    if (normal_runs > 1)
        drop_usual(comparison, ranking);
    run_comparison_sort(comparison);
    comparison->ranked = true;
}
