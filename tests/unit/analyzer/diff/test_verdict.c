/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The comparison in plain words: golden texts, groups, renamed functions, pairs of threads. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/diff/compare_pair.h"
#include "analyzer/diff/verdict.h"
#include "analyzer/diff/verdict_threads.h"
#include "tests/unit/analyzer/two_runs.h"

typedef char run_texts[2][MOST_THREADS][LONGEST_TEXT];

/* What the stores would tell: a function is called where it occurs. */
static void note_calls(const struct loop_summary *summary, struct function_facts *facts)
{
    struct call_tally tally;

    facts->count = summary->symbols.count;
    facts->functions = calloc(facts->count, sizeof(*facts->functions));
    cr_assert_eq(call_tally_init(&tally, summary), 0);
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < summary->runs[side].thread_count; i++)
            call_tally_add(&tally, &summary->table, summary->runs[side].threads[i].loops.elements,
                           summary->runs[side].threads[i].loops.count, side);
    for (size_t i = 0; i < tally.count; i++) {
        struct function_side *sides = facts->functions[tally.counts[i].symbol];

        sides[0] = (struct function_side){.called = tally.counts[i].normal, .size = 100};
        sides[1] = (struct function_side){.called = tally.counts[i].faulty, .size = 100};
        sides[0].in_program = sides[0].called ? IN_PROGRAM_YES : IN_PROGRAM_NO;
        sides[1].in_program = sides[1].called ? IN_PROGRAM_YES : IN_PROGRAM_NO;
    }
    call_tally_release(&tally);
}

static void expect_text(struct loop_summary *loops, const char *wanted)
{
    struct run_comparison comparison;
    struct function_facts facts;
    struct diff_verdict verdict;
    char *text;

    loops->runs[0].run_id = 1;
    loops->runs[1].run_id = 2;
    note_calls(loops, &facts);
    cr_assert_eq(compare_runs(loops, &comparison), 0);
    cr_assert_eq(diff_verdict_make(loops, &comparison, &facts, &verdict), 0);
    text = diff_verdict_text(&verdict, "good", "bad");
    cr_assert_str_eq(text, wanted, "%s", text);
    free(text);
    diff_verdict_release(&verdict);
    function_facts_release(&facts);
    run_comparison_release(&comparison);
    loop_summary_release(loops);
}

#define HEAD(differ, all) \
    differ " of " all " differ between run 1, good (baseline), and run 2, bad (candidate).\n"
#define HEAD_ONE(all) "1 of " all " differs between run 1, good (baseline), and run 2, bad (candidate).\n"
#define SURE "Confidence: no recorded events are missing in either run.\n"
#define BASELINE \
    "            Only one baseline run, so normal run-to-run variation is included; add --baseline.\n"

Test(verdict, no_difference)
{
    struct loop_summary loops = one_thread("ABC", "ABC");

    expect_text(
        &loops,
        "No difference in 1 thread between run 1, good (baseline), and run 2, bad (candidate).\n" SURE);
}

Test(verdict, order_swapped)
{
    struct loop_summary loops = one_thread("IKZRSRSRSRSRSRSF", "IKZRSRSRSSRSRSRF");

    expect_text(&loops,
                HEAD_ONE("1 thread") "Most changed: thread 0.0 made the same calls in another order: "
                                     "MPI_Send where the baseline run calls MPI_Recv.\n"
                                     "  same up to   call 9: MPI_Send\n"
                                     "  next call    MPI_Recv in the baseline run; MPI_Send in the candidate run\n"
                                     "  where        iteration 4 of 6 (baseline run) of L0 = [MPI_Recv "
                                     "MPI_Send]\n" SURE
                                         BASELINE);
}

/* Thread 2 hangs, the others wait for it, each somewhere else; 5 is not touched. */
Test(verdict, hangs_are_grouped)
{
    static run_texts texts;
    struct loop_summary loops;

    for (int i = 0; i < 6; i++) {
        strcpy(texts[0][i], "IKRSRSRSRSRSF");
        strcpy(texts[1][i], i == 2 ? "IKRSRSR" : i == 5 ? "IKRSRSRSRSRSF" : "IKRSRSRSRS");
    }
    loops = two_runs(texts, 6);
    for (int i = 0; i < 5; i++)
        loops.runs[1].threads[i].last_call = LAST_CALL_OPEN;
    expect_text(&loops, HEAD("5", "6 threads") "Most changed: thread 2.0 never returned from MPI_Recv.\n"
                                               "  same up to   call 7: MPI_Recv\n"
                                               "  next call    MPI_Send in the baseline run; none in the candidate run\n"
                                               "  where        iteration 3 of 5 (baseline run) of L0 = "
                                               "[MPI_Recv MPI_Send]\n"
                                               "  call counts  (baseline -> candidate) MPI_Finalize 1 -> 0, MPI_Send 5 -> 2, MPI_Recv 5 -> 3\n"
                                               "Threads 0.0, 1.0, 3.0, 4.0 never returned from MPI_Send.\n" SURE BASELINE);
}

Test(verdict, what_is_missing_is_said)
{
    struct loop_summary loops = one_thread("ABCDEGH", "AB?DEGX");

    loops.runs[1].threads[0].gaps = calloc(1, sizeof(struct loop_gap));
    loops.runs[1].threads[0].gaps[0] = (struct loop_gap){.events = 17, .cause = "ring full"};
    loops.runs[1].threads[0].gap_count = 1;
    loops.runs[1].threads[0].last_call = LAST_CALL_UNKNOWN;
    loops.runs[0].unfinished = true;
    expect_text(&loops,
                HEAD_ONE("1 thread") "Most changed: thread 0.0 called X where the baseline run calls "
                                     "H.\n"
                                     "  same up to   call (after missing events) 3: G\n"
                                     "  next call    H in the baseline run; X in the candidate run\n"
                                     "  call counts  (baseline -> candidate) H 1 -> 0, X 0 -> 1\n"
                                     "No longer in the program: C and H.\n"
                                     "New in the program: X.\n"
                                     "Confidence: One run is unfinished. 17 events are missing. 1 thread "
"could not be compared completely; unknown parts do not count as differences. "
"In 1 thread it is unknown whether the last call returned.\n" BASELINE);
}

/* P became Q everywhere; the thread does the same otherwise. X is new. */
Test(verdict, renamed_functions)
{
    static run_texts texts;
    struct loop_summary loops;

    strcpy(texts[0][0], "APBCPDEE");
    strcpy(texts[1][0], "AQBCQDEE");
    strcpy(texts[0][1], "APBE");
    strcpy(texts[1][1], "AQBXE");
    loops = two_runs(texts, 2);
    expect_text(&loops,
                HEAD("2", "2 threads") "Most changed: thread 1.0 called Q where the baseline run calls "
                                       "P.\n"
                                       "  same up to   call 1: A\n"
                                       "  next call    P in the baseline run; Q in the candidate run\n"
                                       "  call counts  (baseline -> candidate) X 0 -> 1\n"
                                       "Thread 0.0 made the same calls, of functions with other names (a "
                                       "guess).\n"
                                       "Probably renamed (a guess from the calls around them): P -> Q.\n"
                                       "New in the program: X.\n" SURE BASELINE);
}

static size_t renames_between(const char *normal, const char *faulty, uint64_t normal_size,
                              uint64_t faulty_size)
{
    struct loop_summary loops = one_thread(normal, faulty);
    struct function_facts facts;
    struct renames renames;
    size_t count;

    note_calls(&loops, &facts);
    facts.functions['P' - 'A' + 1][0].size = normal_size;
    facts.functions['Q' - 'A' + 1][1].size = faulty_size;
    cr_assert_eq(find_renames(&loops, &facts, &renames), 0);
    count = renames.count;
    renames_release(&renames);
    function_facts_release(&facts);
    loop_summary_release(&loops);
    return count;
}

Test(renames, are_guessed_only_when_clear)
{
    cr_assert_eq(renames_between("APBCPD", "AQBCQD", 100, 100), 1);
    cr_assert_eq(renames_between("APBCPD", "AQBCQD", 100, 120), 0);     /* another function in its place */
    cr_assert_eq(renames_between("APBCPD", "AQBCQD", 20, 20), 0);       /* small ones are often of one size */
    cr_assert_eq(renames_between("APBCPD", "AQBCQD", 0, 0), 0);         /* nothing but its place */
    cr_assert_eq(renames_between("APBCD", "ABCQD", 100, 100), 0);       /* at another place */
    cr_assert_eq(renames_between("ABCP", "ABCQ", 100, 100), 0);         /* at the end */
    cr_assert_eq(renames_between("APBCPDEPG", "AQBCDEG", 100, 100), 0); /* a third of its places */
    cr_assert_eq(renames_between("PAPAPAPA", "QAQAQAQA", 100, 100), 1); /* inside a loop */
    cr_assert_eq(renames_between("APB", "AQBAXB", 100, 100), 0);        /* two candidates alike */
    cr_assert_eq(renames_between("ALPB", "AMQB", 100, 100), 2);         /* renamed together */
}

/* MPI_Recv (R) became MPI_Send (S): so the names say, whatever the sizes, unless they say the contrary. */
Test(renames, names_tell_too)
{
    struct loop_summary loops = one_thread("ARBCRD", "ASBCSD");
    struct function_facts facts;
    struct renames renames;

    note_calls(&loops, &facts);
    for (uint64_t size = 0; size <= 400; size += 80) {
        facts.functions['R' - 'A' + 1][0].size = 100;
        facts.functions['S' - 'A' + 1][1].size = size;
        cr_assert_eq(find_renames(&loops, &facts, &renames), 0);
        cr_assert_eq(renames.count, size <= 160, "%zu", (size_t)size);
        renames_release(&renames);
    }
    function_facts_release(&facts);
    loop_summary_release(&loops);
}

Test(verdict, names_of_threads)
{
    static run_texts texts;
    struct loop_summary loops = two_runs(texts, MOST_THREADS);
    struct run_comparison comparison;
    size_t threads[] = {9, 0, 1, 2, 3, 5, 7, 8, 11, 13, 15};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    cr_assert_eq(compare_runs(&loops, &comparison), 0);
    diff_verdict_threads(out, &comparison, threads, 11);
    fclose(out);
    cr_assert_str_eq(text, "0.0-3.0, 5.0, 7.0-9.0, 11.0, 13.0, 15.0", "%s", text);
    free(text);
    run_comparison_release(&comparison);
    loop_summary_release(&loops);
}

/* ------------------------------------------------------------------------------------------ pairs */

static struct pair_comparison pair_of(const char *first_normal, const char *second_normal,
                                      const char *first_faulty, const char *second_faulty)
{
    static run_texts texts;
    struct loop_summary loops;
    struct pair_comparison pair;

    strcpy(texts[0][0], first_normal);
    strcpy(texts[0][1], second_normal);
    strcpy(texts[1][0], first_faulty);
    strcpy(texts[1][1], second_faulty);
    loops = two_runs(texts, 2);
    cr_assert_eq(compare_pair(&loops, "0.0", "9.0", &pair), -ENOENT);
    cr_assert_eq(compare_pair(&loops, "0.0", "1.0", &pair), 0);
    pair_comparison_release(&pair);
    loop_summary_release(&loops);
    return pair;
}

Test(pairs, how_two_threads_relate)
{
    /* Both changed, and their difference did not. */
    cr_assert_not(pair_of("ABC", "AC", "ABCD", "ACD").changed);
    cr_assert(pair_of("ABC", "ABC", "ABC", "AC").changed);
    cr_assert(pair_of("ABC", "AC", "ABC", "ABC").changed);
    cr_assert(pair_of("ABC", "AC", "ADC", "AC").changed);
    /* What the normal run did not see may have been the same. */
    cr_assert_not(pair_of("A?C", "AC", "ABC", "AC").changed);
    cr_assert(pair_of("A?C", "AC", "ABC", "AC").unknown);
    cr_assert(pair_of("ABC", "ABC", "AB?DEG", "ABCDEH").changed);
}
