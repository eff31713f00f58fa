/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The odd/even sort of the dissertation with 16 ranks, and what happens to its trace 5 (figures 3.6 and 3.7).
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/diff/compare.h"
#include "tests/unit/analyzer/streams.h"
#include "tests/unit/analyzer/two_runs.h"

enum { RANKS = MOST_THREADS, BUG_RANK = 5, BUG_ITERATION = 7 };
enum bug { NONE, SWAP, DEADLOCK };

static void odd_even(int rank, enum bug bug, char *text)
{
    int iterations = rank == 0 || rank == RANKS - 1 ? RANKS / 2 : RANKS;

    text += sprintf(text, "IKZ");
    for (int i = 0; i < iterations; i++) {
        bool buggy = rank == BUG_RANK && i >= BUG_ITERATION;

        if (buggy && bug == DEADLOCK) {
            strcpy(text, "R");
            return;
        }
        text += sprintf(text, "%s", (rank % 2 == 0) != (buggy && bug == SWAP) ? "SR" : "RS");
    }
    strcpy(text, "F");
}

static struct loop_summary odd_even_summary(enum bug bug)
{
    static char texts[2][RANKS][LONGEST_TEXT];

    for (int rank = 0; rank < RANKS; rank++) {
        odd_even(rank, NONE, texts[0][rank]);
        odd_even(rank, bug, texts[1][rank]);
    }
    return two_runs(texts, RANKS);
}

/* "=I K Z -L1^16 +L1^7 +L0^9 =F": a mark for each edit, ? for an unknown one. */
static char *edits_text(const struct loop_summary *summary, const struct thread_diff *thread)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    for (size_t i = 0; i < thread->diff.edit_count; i++) {
        const struct diff_edit *edit = &thread->diff.edits[i];
        struct nlr_sequence normal = {thread->normal->loops.elements + edit->normal, edit->normal_count};
        struct nlr_sequence faulty = {thread->faulty->loops.elements + edit->faulty, edit->faulty_count};
        char *left = sequence_text(&summary->table, &normal),
             *right = sequence_text(&summary->table, &faulty);

        if (edit->op == DIFF_COMMON)
            cr_assert_str_eq(left, right);
        fprintf(out, "%s%c%s", i ? " " : "", "=-+?"[edit->op], edit -> op == DIFF_FAULTY ? right : left);
        if (edit->op == DIFF_UNKNOWN)
            fprintf(out, "|%s", right);
        free(left);
        free(right);
    }
    fclose(out);
    return text;
}

static void expect_thread(const struct loop_summary *summary, const struct thread_diff *thread,
                          const char *edits, const char *words)
{
    char *text = edits_text(summary, thread), *said = thread_diff_words(summary, thread);

    cr_assert_str_eq(text, edits);
    cr_assert_str_eq(said, words, "%s", said);
    free(text);
    free(said);
}

Test(diff_nlr, figure_3_6_swap_bug)
{
    struct loop_summary summary = odd_even_summary(SWAP);
    struct run_comparison comparison;

    cr_assert_eq(compare_runs(&summary, &comparison), 0);
    cr_assert_eq(comparison.count, RANKS);
    cr_assert_eq(comparison.suspect_count, 1);
    cr_assert_eq(comparison.suspects[0], BUG_RANK);
    cr_assert_float_eq(comparison.threads[BUG_RANK].score, 3.0 / 11, 1e-12);
    expect_thread(&summary, &comparison.threads[BUG_RANK], "=I K Z -L1^16 +L1^7 L0^9 =F",
                  "L1 ran 7 times instead of 16, then L0 ran 9 times");
    expect_thread(&summary, &comparison.threads[0], "=I K Z L0^8 F", "");
    expect_thread(&summary, &comparison.threads[15], "=I K Z L1^8 F", "");
    run_comparison_release(&comparison);
    loop_summary_release(&summary);
}

Test(diff_nlr, figure_3_7_deadlock_bug)
{
    struct loop_summary summary = odd_even_summary(DEADLOCK);
    struct run_comparison comparison;

    summary.runs[1].threads[BUG_RANK].last_call = LAST_CALL_OPEN;
    cr_assert_eq(compare_runs(&summary, &comparison), 0);
    cr_assert_eq(comparison.suspect_count, 1);
    cr_assert_eq(comparison.suspects[0], BUG_RANK);
    expect_thread(
        &summary, &comparison.threads[BUG_RANK], "=I K Z -L1^16 F +L1^7 R",
        "L1 ran 7 times instead of 16, then MPI_Recv was called and never returned, then MPI_Finalize was "
        "never reached");
    cr_assert_eq(comparison.threads[BUG_RANK].diff.loop_count, 1);
    run_comparison_release(&comparison);
    loop_summary_release(&summary);
}

/* The others wait for rank 5 and each other, and get stuck later: as many entries change, fewer events. */
Test(diff_nlr, who_came_least_far_is_first)
{
    static char texts[2][RANKS][LONGEST_TEXT];
    struct loop_summary summary;
    struct run_comparison comparison;

    for (int rank = 0; rank < RANKS; rank++) {
        odd_even(rank, NONE, texts[0][rank]);
        odd_even(rank, DEADLOCK, texts[1][rank]);
    }
    strcpy(texts[1][3], "IKZRSRSRSRSRSRSRSRSRSR"); /* nine iterations */
    strcpy(texts[1][7], "IKZRSRSRSRSRSRSRSRSR");   /* eight */
    summary = two_runs(texts, RANKS);
    cr_assert_eq(compare_runs(&summary, &comparison), 0);
    cr_assert_eq(comparison.suspect_count, 3);
    cr_assert_float_eq(comparison.threads[3].score, comparison.threads[BUG_RANK].score, 1e-12);
    cr_assert_eq(comparison.suspects[0], BUG_RANK);
    cr_assert_eq(comparison.suspects[1], 7);
    cr_assert_eq(comparison.suspects[2], 3);
    run_comparison_release(&comparison);
    loop_summary_release(&summary);
}

static void expect_pair(const char *normal, const char *faulty, const char *edits, const char *words)
{
    struct loop_summary summary = one_thread(normal, faulty);
    struct run_comparison comparison;

    cr_assert_eq(compare_runs(&summary, &comparison), 0);
    cr_assert_eq(comparison.suspect_count, *words ? 1 : 0);
    expect_thread(&summary, &comparison.threads[0], edits, words);
    run_comparison_release(&comparison);
    loop_summary_release(&summary);
}

Test(diff_nlr, blocks_in_plain_words)
{
    expect_pair("ABC", "ABC", "=A B C", "");
    expect_pair("ABC", "AC", "=A -B =C", "B was not called");
    expect_pair("AB", "ABC", "=A B +C", "C was called");
    expect_pair("ABCDE", "A", "=A -B C D E", "B, C, D and E were never reached");
    expect_pair("ABCDEGH", "A", "=A -B C D E G H", "B, C, D and 3 more were never reached");
    expect_pair("AXXXB", "AB", "=A -L0^3 =B", "L0 did not run (3 times in the baseline run)");
    expect_pair("AXXXB", "AXXB", "=A -L0^3 +L0^2 =B", "L0 ran twice instead of 3");
    expect_pair("", "A", "+A", "A was called");
    expect_pair("AXXXB", "AXXXXYYYB", "=A -L0^3 +L0^4 L1^3 =B",
                "L0 ran 4 times instead of 3, then L1 ran 3 times");
}

/* ---------------------------------------------------------------------------------------- what is unknown */

Test(diff_nlr, lost_events_are_no_difference)
{
    expect_pair("ABCD", "AB?D", "=A B ?C|? =D", "");
    expect_pair("ABCD", "AB?", "=A B ?C D|?", "");
    expect_pair("?ABC", "ABC", "??| =A B C", "");
    expect_pair("A?B", "A?B", "=A ??|? =B", "");
    expect_pair("AXXXXXXB", "AXXX?XXB", "=A ?L0^6|L0^3 ? L0^2 =B", "");
    /* Beyond the next common entry differences are differences. */
    expect_pair("ABCDEG", "A?CDEH", "=A ?B|? =C D E -G +H", "H was called, then G was never reached");
}

Test(diff_nlr, incomplete_threads)
{
    struct loop_summary summary = one_thread("ABCD", "ABD");
    struct run_comparison comparison;

    /* The faulty run may have lost C. */
    summary.runs[1].threads[0].incomplete = true;
    cr_assert_eq(compare_runs(&summary, &comparison), 0);
    cr_assert_eq(comparison.suspect_count, 0);
    cr_assert(comparison.threads[0].unknown);
    run_comparison_release(&comparison);
    /* That the normal run may have lost something does not explain what only it has. */
    summary.runs[1].threads[0].incomplete = false;
    summary.runs[0].threads[0].incomplete = true;
    cr_assert_eq(compare_runs(&summary, &comparison), 0);
    cr_assert_eq(comparison.suspect_count, 1);
    run_comparison_release(&comparison);
    loop_summary_release(&summary);
}

Test(diff_nlr, a_last_call_that_never_returned)
{
    struct loop_summary summary = one_thread("ABC", "ABC");
    struct run_comparison comparison;

    summary.runs[1].threads[0].last_call = LAST_CALL_OPEN;
    cr_assert_eq(compare_runs(&summary, &comparison), 0);
    cr_assert_eq(comparison.suspect_count, 1);
    expect_thread(&summary, &comparison.threads[0], "=A B C", "the last call, of C, never returned");
    run_comparison_release(&comparison);
    summary.runs[0].threads[0].last_call = LAST_CALL_UNKNOWN;
    cr_assert_eq(compare_runs(&summary, &comparison), 0);
    cr_assert_eq(comparison.suspect_count, 0);
    run_comparison_release(&comparison);
    loop_summary_release(&summary);
}

Test(compare, threads_on_one_side_only)
{
    struct loop_summary summary = odd_even_summary(NONE);
    struct run_comparison comparison;

    free(summary.runs[1].threads[3].label);
    summary.runs[1].threads[3].label = strdup("3.1");
    cr_assert_eq(compare_runs(&summary, &comparison), 0);
    cr_assert_eq(comparison.count, RANKS + 1);
    cr_assert_eq(comparison.one_sided, 2);
    cr_assert_null(comparison.threads[3].faulty);
    cr_assert_null(comparison.threads[4].normal);
    cr_assert_str_eq(thread_diff_label(&comparison.threads[4]), "3.1");
    run_comparison_release(&comparison);
    summary.runs[1].unfinished = true; /* 3.0 may have been lost */
    cr_assert_eq(compare_runs(&summary, &comparison), 0);
    cr_assert_eq(comparison.one_sided, 1);
    run_comparison_release(&comparison);
    loop_summary_release(&summary);
}

Test(compare, labels_are_in_numeric_order)
{
    cr_assert_lt(thread_label_compare("2.0", "10.0"), 0);
    cr_assert_lt(thread_label_compare("2.9", "2.10"), 0);
    cr_assert_eq(thread_label_compare("2.1", "2.1"), 0);
    cr_assert_lt(thread_label_compare("0.2", "0.g1"), 0);
    cr_assert_lt(thread_label_compare("0", "0.1"), 0);
    cr_assert_gt(thread_label_compare("0.g10", "0.g9"), 0);
}
