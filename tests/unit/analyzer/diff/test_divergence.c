/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where two histories part, and what kind of difference that is. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/diff/divergence.h"
#include "tests/unit/analyzer/streams.h"
#include "tests/unit/analyzer/two_runs.h"

static struct divergence divergence_of(struct loop_summary *summary)
{
    struct run_comparison comparison;
    struct call_tally tally;
    struct divergence divergence;

    cr_assert_eq(compare_runs(summary, &comparison), 0);
    cr_assert_eq(call_tally_init(&tally, summary), 0);
    cr_assert_eq(find_divergence(summary, &comparison.threads[0], &tally, &divergence), 0);
    call_tally_release(&tally);
    run_comparison_release(&comparison);
    return divergence;
}

static char letter(uint32_t symbol)
{
    return symbol == SYMBOL_DROPPED ? '-' : (char)('A' + symbol - 1);
}

/* `place`: last common call, next normal and next faulty one, as letters. */
static void expect(const char *normal, const char *faulty, enum divergence_kind kind, uint64_t common,
                   const char *place)
{
    struct loop_summary summary = one_thread(normal, faulty);
    struct divergence found = divergence_of(&summary);
    char letters[] = {letter(found.last_common), letter(found.normal_next), letter(found.faulty_next), 0};

    cr_assert_eq(found.kind, kind, "%s / %s: %s", normal, faulty, divergence_kind_name(found.kind));
    cr_assert_eq(found.common, common, "%s / %s: %lu", normal, faulty, (unsigned long)found.common);
    cr_assert_str_eq(letters, place, "%s / %s: %s", normal, faulty, letters);
    loop_summary_release(&summary);
}

Test(divergence, kinds)
{
    expect("ABC", "ABC", DIVERGENCE_NONE, 3, "C--");
    expect("ABC", "AB", DIVERGENCE_STOPS, 2, "BC-");
    expect("AB", "ABC", DIVERGENCE_CONTINUES, 2, "B-C");
    expect("ABC", "AC", DIVERGENCE_MISSING, 1, "ABC");
    expect("AC", "ABC", DIVERGENCE_ADDED, 1, "ACB");
    expect("ABC", "ADC", DIVERGENCE_OTHER, 1, "ABD");
    expect("ABCD", "ACBD", DIVERGENCE_ORDER, 1, "ABC");
    expect("ARSRSRSRSF", "ASRSRSRSRF", DIVERGENCE_ORDER, 1, "ARS");
    expect("AXXXXXB", "AXXXB", DIVERGENCE_LOOP_SHORTER, 4, "XXB");
    expect("AXXXB", "AXXXXXB", DIVERGENCE_LOOP_LONGER, 4, "XBX");
    expect("B", "C", DIVERGENCE_OTHER, 0, "-BC");
    expect("", "A", DIVERGENCE_CONTINUES, 0, "--A");
}

/* The sort's bugs: L1 ^ 16 against L1 ^ 7 L0 ^ 9, and against L1 ^ 7 and a receive. */
Test(divergence, inside_loops)
{
    struct loop_summary summary = one_thread("IRSRSRSRSRSF", "IRSRSRSR");
    struct divergence found;

    summary.runs[1].threads[0].last_call = LAST_CALL_OPEN;
    found = divergence_of(&summary);
    cr_assert_eq(found.kind, DIVERGENCE_HANGS);
    cr_assert_eq(letter(found.stuck), 'R');
    cr_assert_eq(found.common, 8);
    cr_assert_eq(letter(found.last_common), 'R');
    cr_assert_eq(letter(found.normal_next), 'S');
    cr_assert_eq(found.faulty_next, SYMBOL_DROPPED);
    cr_assert_eq(found.iteration, 4);
    cr_assert_eq(found.iterations, 5);
    cr_assert_not(found.loop_is_faulty);
    loop_summary_release(&summary);
}

Test(divergence, a_hang_needs_a_normal_run_that_does_not)
{
    struct loop_summary summary = one_thread("ABC", "ABC");

    summary.runs[1].threads[0].last_call = LAST_CALL_OPEN;
    cr_assert_eq(divergence_of(&summary).kind, DIVERGENCE_HANGS);
    summary.runs[0].threads[0].last_call = LAST_CALL_OPEN;
    cr_assert_eq(divergence_of(&summary).kind, DIVERGENCE_NONE);
    summary.runs[1].threads[0].last_call = LAST_CALL_RETURNED;
    cr_assert_eq(divergence_of(&summary).kind, DIVERGENCE_HUNG_NORMAL);
    summary.runs[0].threads[0].last_call = LAST_CALL_UNKNOWN;
    cr_assert_eq(divergence_of(&summary).kind, DIVERGENCE_NONE);
    loop_summary_release(&summary);
}

/* Calls are counted from behind what is missing, and nothing is said of what lies there. */
Test(divergence, behind_lost_events)
{
    struct loop_summary summary = one_thread("ABCDEG", "A?CDEH");
    struct divergence found = divergence_of(&summary);

    cr_assert_eq(found.kind, DIVERGENCE_OTHER);
    cr_assert_not(found.exact);
    cr_assert_eq(found.common, 3);
    cr_assert_eq(letter(found.last_common), 'E');
    cr_assert_eq(letter(found.normal_next), 'G');
    loop_summary_release(&summary);
    summary = one_thread("ABCD", "AB?");
    found = divergence_of(&summary);
    cr_assert_eq(found.kind, DIVERGENCE_NONE);
    cr_assert_not(found.exact);
    loop_summary_release(&summary);
}

static void expect_prefix(const uint32_t *normal, size_t n, const uint32_t *faulty, size_t m)
{
    struct loop_summary summary = one_thread("", "");
    struct divergence found;
    size_t common = 0;

    while (common < n && common < m && normal[common] == faulty[common])
        common++;
    free(summary.runs[0].threads[0].loops.elements);
    free(summary.runs[1].threads[0].loops.elements);
    summary.runs[0].threads[0].loops = reduce(&summary.table, 10, 3, normal, n);
    summary.runs[1].threads[0].loops = reduce(&summary.table, 10, 3, faulty, m);
    found = divergence_of(&summary);
    cr_assert_eq(found.common, common);
    cr_assert_eq(found.last_common, common ? normal[common - 1] : SYMBOL_DROPPED);
    cr_assert_eq(found.normal_next, common < n ? normal[common] : SYMBOL_DROPPED);
    cr_assert_eq(found.faulty_next, common < m ? faulty[common] : SYMBOL_DROPPED);
    loop_summary_release(&summary);
}

/* However loops were folded, the place is where the streams of calls part. */
Test(divergence, is_where_the_streams_part)
{
    uint64_t seed = 7;

    for (int round = 0; round < 400; round++) {
        uint32_t normal[400], faulty[400];
        size_t n = random_stream(&seed, 4, 300, normal), m = n;

        for (size_t i = 0; i < n; i++)
            faulty[i] = ++normal[i];
        if (n && random_below(&seed, 3)) {
            size_t at = random_below(&seed, (uint32_t)n);

            m = at + random_stream(&seed, 4, 399 - at < 60 ? 399 - at : 60, faulty + at);
            for (size_t i = at; i < m; i++)
                faulty[i]++;
        }
        expect_prefix(normal, n, faulty, m);
    }
}
