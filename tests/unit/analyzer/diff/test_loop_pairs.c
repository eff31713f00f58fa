/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which loop is which, what stands next to what, and what is different inside. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/diff/diff_rows.h"
#include "analyzer/diff/loop_pairs.h"
#include "tests/unit/analyzer/streams.h"
#include "tests/unit/analyzer/two_runs.h"

static char *element_text(const struct loop_table *table, const struct nlr_sequence *sequence, size_t at)
{
    struct nlr_sequence one;

    if (at == DIFF_NO_ENTRY)
        return strdup("-");
    one = (struct nlr_sequence){sequence->elements + at, 1};
    return sequence_text(table, &one);
}

static void put_rows(FILE *out, const struct loop_table *table, const struct nlr_sequence *normal,
                     const struct nlr_sequence *faulty, const struct diff_nlr *diff, size_t context)
{
    struct diff_rows rows;

    cr_assert_eq(diff_rows(diff, context, &rows), 0);
    for (size_t i = 0; i < rows.count; i++) {
        const struct diff_row *row = &rows.rows[i];
        char *left = element_text(table, normal, row->normal),
             *right = element_text(table, faulty, row->faulty);

        if (row->kind == ROW_FOLDED)
            fprintf(out, "%s...%zu", i ? " " : "", row->folded);
        else
            fprintf(out, "%s%s%c%s", i ? " " : "", left, "=|?"[row->kind], right);
        if (row->loop)
            fputs(row->loop->same ? "*" : "~", out);
        free(left);
        free(right);
    }
    diff_rows_release(&rows);
}

/* "A=A L0^3|L0^2*": a row each; * the same loop, ~ a similar one. */
static void expect_rows(const char *normal, const char *faulty, size_t context, const char *wanted)
{
    struct loop_summary summary = one_thread(normal, faulty);
    const struct thread_loops *left = summary.runs[0].threads, *right = summary.runs[1].threads;
    struct diff_nlr diff;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    cr_assert_eq(diff_nlr(&summary.table, &(struct diff_side){&left->loops, false},
                          &(struct diff_side){&right->loops, false}, &diff),
                 0);
    put_rows(out, &summary.table, &left->loops, &right->loops, &diff, context);
    fclose(out);
    cr_assert_str_eq(text, wanted, "%s", text);
    free(text);
    diff_nlr_release(&diff);
    loop_summary_release(&summary);
}

Test(loop_pairs, rows)
{
    expect_rows("ABC", "ADC", SIZE_MAX, "A=A B|D C=C");
    expect_rows("ABC", "AC", SIZE_MAX, "A=A B|- C=C");
    expect_rows("A?C", "ABC", SIZE_MAX, "A=A ??B C=C");
    /* The loop has a row, whatever is in front of it on one side. */
    expect_rows("AXXXXXB", "AYZXXXB", SIZE_MAX, "A=A -|Y -|Z L0^5|L0^3* B=B");
    expect_rows("AXXXXXB", "AXXXYZB", SIZE_MAX, "A=A L0^5|L0^3* -|Y -|Z B=B");
}

Test(loop_pairs, common_entries_are_folded)
{
    expect_rows("ABCDEGHX", "ABCDEGHY", SIZE_MAX, "A=A B=B C=C D=D E=E G=G H=H X|Y");
    expect_rows("ABCDEGHX", "ABCDEGHY", 2, "...5 G=G H=H X|Y");
    expect_rows("ABCDX", "ABCDY", 2, "A=A B=B C=C D=D X|Y");
    expect_rows("ABCDE", "ABCDE", 2, "...5");
    expect_rows("ABCDE", "ABCDE", SIZE_MAX, "A=A B=B C=C D=D E=E");
    expect_rows("XABCDEGHX", "YABCDEGHY", 1, "X|Y A=A ...5 H=H X|Y");
}

/* [A B C] against [A B D C], and then loops that are nothing alike. */
Test(loop_pairs, similar_bodies)
{
    expect_rows("ABCABCABC", "ABDCABDCABDC", SIZE_MAX, "L0^3|L1^3~");
    expect_rows("ABCABCABC", "DEGDEGDEG", SIZE_MAX, "L0^3|L1^3");
    /* Half is not enough: the two ways of exchanging messages are not one. */
    expect_rows("RSRSRS", "SRSRSR", SIZE_MAX, "L0^3|L1^3");
    /* Of two candidates the better one. */
    expect_rows("ABCDABCDABCD", "ABCGABCGABCGABCDEABCDEABCDE", SIZE_MAX, "-|L1^3 L0^3|L2^3~");
}

Test(loop_pairs, bodies_that_differ)
{
    struct loop_summary summary = one_thread("ABCABCABC", "ABDCABDCABDC");
    const struct nlr_element *normal = summary.runs[0].threads[0].loops.elements;
    const struct nlr_element *faulty = summary.runs[1].threads[0].loops.elements;
    struct nlr_sequence left = loop_body_sequence(&summary.table, normal->id);
    struct nlr_sequence right = loop_body_sequence(&summary.table, faulty->id);
    struct diff_nlr diff;
    double similarity;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    cr_assert_eq(loop_similarity(&summary.table, normal->id, faulty->id, &similarity), 0);
    cr_assert_float_eq(similarity, 6.0 / 7, 1e-12);
    cr_assert_eq(diff_nlr_bodies(&summary.table, normal->id, faulty->id, &diff), 0);
    put_rows(out, &summary.table, &left, &right, &diff, SIZE_MAX);
    fclose(out);
    cr_assert_str_eq(text, "A=A B=B -|D C=C");
    free(text);
    diff_nlr_release(&diff);
    loop_summary_release(&summary);
}

Test(loop_pairs, in_plain_words)
{
    struct loop_summary summary = one_thread("ABCABCABC", "ABDCABDCABDCABDC");
    struct run_comparison comparison;
    char *words;

    cr_assert_eq(compare_runs(&summary, &comparison), 0);
    words = thread_diff_words(&summary, &comparison.threads[0]);
    cr_assert_str_eq(words, "L1 ran 4 times in place of L0, which ran 3 times");
    free(words);
    run_comparison_release(&comparison);
    loop_summary_release(&summary);
}

/* Every entry of both sides is in one row, in order. */
Test(loop_pairs, rows_have_every_entry_once)
{
    uint64_t seed = 3;

    for (int round = 0; round < 300; round++) {
        struct loop_table table = {0};
        uint32_t streams[2][300];
        struct nlr_sequence sides[2];
        struct diff_nlr diff;
        struct diff_rows rows;
        size_t at[2] = {0, 0};

        for (int side = 0; side < 2; side++) {
            size_t count = random_stream(&seed, 4, 250, streams[side]);

            sides[side] = reduce(&table, 10, 3, streams[side], count);
        }
        cr_assert_eq(diff_nlr(&table, &(struct diff_side){&sides[0], false},
                              &(struct diff_side){&sides[1], false}, &diff),
                     0);
        cr_assert_eq(diff_rows(&diff, SIZE_MAX, &rows), 0);
        for (size_t i = 0; i < rows.count; i++) {
            if (rows.rows[i].normal != DIFF_NO_ENTRY)
                cr_assert_eq(rows.rows[i].normal, at[0]++);
            if (rows.rows[i].faulty != DIFF_NO_ENTRY)
                cr_assert_eq(rows.rows[i].faulty, at[1]++);
        }
        cr_assert_eq(at[0], sides[0].count);
        cr_assert_eq(at[1], sides[1].count);
        diff_rows_release(&rows);
        diff_nlr_release(&diff);
        free(sides[0].elements);
        free(sides[1].elements);
        loop_table_release(&table);
    }
}
