/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rankings of runs made of texts, a letter a call. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/diff/compare.h"
#include "analyzer/diff/compare_rank.h"
#include "analyzer/ranking/ranking.h"
#include "tests/unit/analyzer/streams.h"

enum { RUNS = 4, THREADS = 8 };

static const struct attribute_kind kinds[] = {
    {ATTRIBUTE_SINGLE, FREQUENCY_ACTUAL}, {ATTRIBUTE_SINGLE, FREQUENCY_LOG10},
    {ATTRIBUTE_SINGLE, FREQUENCY_NONE},   {ATTRIBUTE_DOUBLE, FREQUENCY_ACTUAL},
    {ATTRIBUTE_DOUBLE, FREQUENCY_LOG10},  {ATTRIBUTE_DOUBLE, FREQUENCY_NONE},
};
static const enum linkage_method linkages[] = {LINKAGE_WARD, LINKAGE_SINGLE};

/* Threads 0.0, 0.1, 1.0, 1.1 ...: two a process. A text of NULL: the run does not have the thread. */
static struct loop_summary summarise(const char *texts[][THREADS], size_t runs)
{
    struct loop_summary summary = {.runs = calloc(runs, sizeof(struct run_loops)), .run_count = runs};

    for (size_t run = 0; run < runs; run++) {
        struct run_loops *loops = &summary.runs[run];

        loops->threads = calloc(THREADS, sizeof(struct thread_loops));
        for (size_t i = 0; i < THREADS; i++) {
            struct thread_loops *thread = &loops->threads[loops->thread_count];

            if (!texts[run][i])
                continue;
            thread->loops = reduce_text(&summary.table, texts[run][i]);
            cr_assert_gt(asprintf(&thread->label, "%zu.%zu", i / 2, i % 2), 0);
            loops->thread_count++;
        }
    }
    return summary;
}

static struct ranking rank(const struct loop_summary *summary, unsigned workers)
{
    struct ranking_view view = {.filter = "everything", .max_body = 10, .summary = summary};
    struct ranking_sweep sweep = {.views = &view,
                                  .view_count = 1,
                                  .attributes = kinds,
                                  .attribute_count = 6,
                                  .linkages = linkages,
                                  .linkage_count = 2,
                                  .workers = workers};
    struct ranking ranking;

    cr_assert_eq(rank_runs(&sweep, &ranking), 0);
    cr_assert_eq(ranking.row_count, 12);
    return ranking;
}

static const char *first(const struct ranking_objects *objects)
{
    return objects->labels[objects->consensus[0].object];
}

#define ALIKE "IXXXXF", "IXXXXF", "IXXXXF", "IXXXXF", "IYYYYF", "IYYYYF", "IYYYYF", "IYYYYF"

Test(ranking, equal_runs_have_no_suspects)
{
    const char *texts[][THREADS] = {{ALIKE}, {ALIKE}};
    struct loop_summary summary = summarise(texts, 2);
    struct ranking ranking = rank(&summary, 1);

    cr_assert_eq(ranking.threads.count, THREADS);
    cr_assert_eq(ranking.processes.count, THREADS / 2);
    cr_assert_eq(ranking.unranked_count, 0);
    for (size_t i = 0; i < THREADS; i++)
        cr_assert_eq(ranking.threads.consensus[i].score, 0);
    for (size_t i = 0; i < ranking.row_count; i++) {
        cr_assert_eq(ranking.rows[i].b_score, 1);
        cr_assert_eq(ranking.rows[i].thread_count, 0);
    }
    ranking_release(&ranking);
    loop_summary_release(&summary);
}

Test(ranking, the_thread_that_changed_is_first)
{
    const char *texts[][THREADS] = {
        {ALIKE},
        {"IXXXXF", "IXXXXF", "IXXXXF", "IXZXZF", "IYYYYF", "IYYYYF", "IYYYYF", "IYYYYF"},
    };
    struct loop_summary summary = summarise(texts, 2);
    struct ranking ranking = rank(&summary, 1);
    double last = 0;

    cr_assert_str_eq(first(&ranking.threads), "1.1");
    cr_assert_str_eq(first(&ranking.processes), "1");
    cr_assert_gt(ranking.threads.consensus[0].score, 2 * ranking.threads.consensus[1].score);
    cr_assert_eq(ranking.threads.consensus[0].variation, 0);
    for (size_t i = 0; i < ranking.row_count; i++) {
        const struct ranking_row *row = &ranking.rows[i];

        cr_assert_geq(row->b_score, last);
        last = row->b_score;
        cr_assert_eq(row->thread_count, 1, "%zu with %s %s", row->thread_count,
                     attribute_kind_name(row->attributes), linkage_name(row->linkage));
        cr_assert_str_eq(ranking.threads.labels[row->threads[0]], "1.1");
        cr_assert_str_eq(ranking.processes.labels[row->processes[0]], "1");
    }
    ranking_release(&ranking);
    loop_summary_release(&summary);
}

/* All lose the same: it singles nobody out, but the one that comes least far does more. */
Test(ranking, what_all_have_in_common_is_no_suspicion)
{
    const char *texts[][THREADS] = {
        {ALIKE},
        {"IXXXX", "IXXXX", "IXXXX", "IXXXX", "IYYYY", "IYYYY", "IYYYY", "IYYYY"},
        {"IXXXX", "IXXXX", "IXXXX", "IXXX", "IYYYY", "IYYYY", "IYYYY", "IYYYY"},
    };
    const char *stuck[][THREADS] = {{ALIKE}, {0}};
    struct loop_summary summary = summarise(texts, 2);
    struct ranking ranking = rank(&summary, 1);

    for (size_t i = 0; i < THREADS; i++) {
        cr_assert_lt(ranking.threads.consensus[i].change, 1e-12);
        cr_assert_gt(ranking.threads.consensus[i].score, 0); /* but nobody is said not to have changed */
        cr_assert_float_eq(ranking.threads.consensus[i].score, ranking.threads.consensus[0].score, 1e-12);
    }
    ranking_release(&ranking);
    loop_summary_release(&summary);

    memcpy(stuck[1], texts[2], sizeof(stuck[1]));
    summary = summarise(stuck, 2);
    ranking = rank(&summary, 1);
    cr_assert_str_eq(first(&ranking.threads), "1.1");
    ranking_release(&ranking);
    loop_summary_release(&summary);
}

/* 3.1 does something else in each normal run, and again in the faulty one; 0.0 only in the faulty one. */
Test(ranking, what_varies_between_normal_runs_is_no_suspicion)
{
    const char *texts[RUNS][THREADS] = {
        {"IXXXXF", "IXXXXF", "IXXXXF", "IXXXXF", "IYYYYF", "IYYYYF", "IYYYYF", "IYYYYF"},
        {"IXXXXF", "IXXXXF", "IXXXXF", "IXXXXF", "IYYYYF", "IYYYYF", "IYYYYF", "IYYYF"},
        {"IXXXXF", "IXXXXF", "IXXXXF", "IXXXXF", "IYYYYF", "IYYYYF", "IYYYYF", "IYYYYYF"},
        {"IXXXXF", "IXXXXF", "IXXXXF", "IXXXXF", "IYYYYF", "IYYYYF", "IYYYYF", "IYYYYYYF"},
    };
    struct loop_summary summary = summarise(texts, RUNS);
    struct ranking ranking = rank(&summary, 1);

    cr_assert_eq(ranking.threads.consensus[0].score, 0);
    cr_assert_str_eq(first(&ranking.threads), "3.1");
    cr_assert_gt(ranking.threads.consensus[0].change, 0);
    cr_assert_gt(ranking.threads.consensus[0].variation, ranking.threads.consensus[0].change);
    ranking_release(&ranking);
    loop_summary_release(&summary);

    texts[3][0] = "IABCDF";
    summary = summarise(texts, RUNS);
    ranking = rank(&summary, 1);
    cr_assert_str_eq(first(&ranking.threads), "0.0");
    cr_assert_gt(ranking.threads.consensus[0].score, 0);
    cr_assert_eq(ranking.threads.consensus[1].score, 0);
    ranking_release(&ranking);
    loop_summary_release(&summary);
}

Test(ranking, what_cannot_be_compared_is_listed)
{
    const char *texts[][THREADS] = {
        {"IXXXXF", NULL, "IXXXXF", "IXXXXF", NULL, "IYYYYF", "IYYYYF", "IYYYYF"},
        {"IXXXXF", NULL, "IXXXXF", "IXXXXF", "IYYYYF", "IYYYYF", "IYYYYF", "IYYYYF"},
        {NULL, "IXXXXF", "IXXXXF", "IXXXXF", "IYYYYF", "IYYYYF", "IYYYYF", "IYYYYF"},
    };
    static const struct {
        const char *label;
        enum unranked_why why;
    } expected[] = {
        {"0.0", UNRANKED_ONLY_NORMAL},
        {"0.1", UNRANKED_ONLY_FAULTY},
        {"2.0", UNRANKED_VARIES},
        {"3.1", UNRANKED_UNKNOWN},
    };
    struct loop_summary summary = summarise(texts, 3);
    struct ranking ranking;

    summary.runs[2].threads[summary.runs[2].thread_count - 1].incomplete = true;
    ranking = rank(&summary, 1);
    cr_assert_eq(ranking.unranked_count, 4);
    for (size_t i = 0; i < 4; i++) {
        cr_assert_str_eq(ranking.unranked[i].label, expected[i].label);
        cr_assert_eq(ranking.unranked[i].why, expected[i].why);
    }
    cr_assert_eq(ranking.threads.count, 4);
    ranking_release(&ranking);
    loop_summary_release(&summary);
}

/* In the order in which they happen to be computed nothing may change. */
Test(ranking, several_workers_find_the_same)
{
    const char *texts[][THREADS] = {
        {ALIKE},
        {"IXXAXF", "IXXXXF", "IXXBXF", "IXZXZF", "IYYYYF", "IYCYYF", "IYYF", "IYYYYF"},
    };
    struct loop_summary summary = summarise(texts, 2);
    struct ranking one = rank(&summary, 1), many = rank(&summary, 5);

    cr_assert_arr_eq(one.threads.consensus, many.threads.consensus, THREADS * sizeof(struct ranked));
    for (size_t i = 0; i < one.row_count; i++) {
        cr_assert_eq(one.rows[i].b_score, many.rows[i].b_score);
        cr_assert_eq(one.rows[i].thread_count, many.rows[i].thread_count);
        cr_assert_arr_eq(one.rows[i].threads, many.rows[i].threads, one.rows[i].thread_count * 4);
    }
    ranking_release(&one);
    ranking_release(&many);
    loop_summary_release(&summary);
}

Test(ranking, one_thread_alone)
{
    const char *texts[][THREADS] = {{"IXXXXF"}, {"IXXXZ"}};
    struct loop_summary summary = summarise(texts, 2);
    struct ranking ranking = rank(&summary, 1);

    cr_assert_eq(ranking.threads.count, 1);
    cr_assert_gt(ranking.threads.consensus[0].score, 0);
    ranking_release(&ranking);
    loop_summary_release(&summary);
}

Test(ranking, nothing_to_rank)
{
    const char *texts[][THREADS] = {{"IXXXXF"}, {NULL, "IXXXZ"}};
    struct loop_summary summary = summarise(texts, 2);
    struct ranking ranking = rank(&summary, 1);
    struct ranking_sweep empty = {0};

    cr_assert_eq(ranking.threads.count, 0);
    cr_assert_eq(ranking.unranked_count, 2);
    ranking_release(&ranking);
    loop_summary_release(&summary);
    cr_assert_eq(rank_runs(&empty, &ranking), -EINVAL);
}

/* 3.1 changes more than 0.0 does, but so it does between normal runs. */
Test(ranking, the_suspects_of_a_comparison)
{
    const char *texts[RUNS][THREADS] = {
        {ALIKE},
        {"IXXXXF", "IXXXXF", "IXXXXF", "IXXXXF", "IYYYYF", "IYYYYF", "IYYYYF", "IABCDEF"},
        {"IXXXXF", "IXXXXF", "IXXXXF", "IXXXXF", "IYYYYF", "IYYYYF", "IYYYYF", "IEDCBAF"},
        {"IXZXXF", "IXXXXF", "IXXXXF", "IXXXXF", "IYYYYF", "IYYYYF", "IYYYYF", "IBADCEF"},
    };
    struct loop_summary summary = summarise(texts, RUNS);
    struct ranking ranking = rank(&summary, 1);
    struct run_comparison comparison;

    cr_assert_eq(compare_runs(&summary, &comparison), 0);
    cr_assert_eq(comparison.suspect_count, 2);
    cr_assert_str_eq(thread_diff_label(&comparison.threads[comparison.suspects[0]]), "3.1");
    run_comparison_rank(&comparison, &ranking, 1);
    cr_assert_eq(comparison.suspect_count, 2);
    cr_assert_eq(comparison.usual, 0);
    cr_assert_str_eq(thread_diff_label(&comparison.threads[comparison.suspects[0]]), "0.0");
    cr_assert_eq(comparison.threads[comparison.suspects[0]].score, ranking.threads.consensus[0].score);
    run_comparison_rank(&comparison, &ranking, RUNS - 1);
    cr_assert_eq(comparison.suspect_count, 1);
    cr_assert_eq(comparison.usual, 1);
    run_comparison_release(&comparison);
    ranking_release(&ranking);
    loop_summary_release(&summary);
}

/* A thread of which events are missing has no score, and is no less suspect for that; what launched the
 * program has none either, and is left aside. */
Test(ranking, what_has_no_score_is_not_called_usual)
{
    const char *texts[RUNS][THREADS] = {
        {ALIKE},
        {ALIKE},
        {ALIKE},
        {"IXZXXF", "IXXXXF", "IXXZXF", "IXXXXF", "IYYYYF", "IYYYYF", "IYYYYF", "IYYZYF"},
    };
    struct loop_summary summary = summarise(texts, RUNS);
    struct run_comparison comparison;
    struct ranking ranking;

    for (size_t run = 0; run < RUNS; run++)
        for (size_t i = 0; i + 1 < THREADS; i++)
            summary.runs[run].threads[i].has_rank = true;
    summary.runs[1].threads[2].incomplete = true;
    ranking = rank(&summary, 1);
    cr_assert_eq(compare_runs(&summary, &comparison), 0);
    run_comparison_rank(&comparison, &ranking, RUNS - 1);
    cr_assert_eq(comparison.suspect_count, 2);
    cr_assert_str_eq(thread_diff_label(&comparison.threads[comparison.suspects[0]]), "0.0");
    cr_assert_str_eq(thread_diff_label(&comparison.threads[comparison.suspects[1]]), "1.0");
    cr_assert_eq(comparison.usual, 0);
    cr_assert_eq(comparison.aside, 1);
    run_comparison_release(&comparison);
    ranking_release(&ranking);
    loop_summary_release(&summary);
}
