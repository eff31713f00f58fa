/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "analyzer/loops/known_loops.h"
#include "analyzer/loops/nlr.h"
#include "base/array.h"
#include "tests/unit/analyzer/streams.h"

static const uint32_t bodies[] = {1, 2, 3, 4, 5, 7, 10, 17, 50};

/* --------------------------------------------------------------------------------- Procedure 1 as printed */

struct naive {
    struct loop_table table;
    struct nlr_element *stack;
    size_t count;
    size_t k, repeats;
};

static bool top_blocks_equal(const struct naive *naive, size_t length)
{
    if (length * naive->repeats > naive->count)
        return false;
    for (size_t block = 1; block < naive->repeats; block++)
        if (!nlr_same(naive->stack + naive->count - length,
                      naive->stack + naive->count - length * (block + 1), length))
            return false;
    return true;
}

static bool top_is_body_of(const struct naive *naive, size_t length)
{
    const struct nlr_element *loop;

    if (length + 1 > naive->count)
        return false;
    loop = &naive->stack[naive->count - length - 1];
    return loop->kind == NLR_LOOP && naive->table.bodies[loop->id].length == length &&
           nlr_same(loop_table_elements(&naive->table, loop->id), loop + 1, length);
}

static void naive_reduce(struct naive *naive)
{
    for (size_t i = 1; i <= naive->repeats * naive->k; i++) {
        size_t length = i / naive->repeats;

        if (i % naive->repeats == 0 && top_blocks_equal(naive, length)) {
            struct nlr_element loop = {NLR_LOOP, 0, naive->repeats};
            const struct nlr_element *body = naive->stack + naive->count - length;

            cr_assert_eq(
                loop_table_add(&naive->table, body, (uint32_t)length, nlr_hash_block(body, length), &loop.id),
                0);
            naive->count -= i;
            naive->stack[naive->count++] = loop;
            naive_reduce(naive);
        }
        if (i > 1 && top_is_body_of(naive, i - 1)) {
            naive->count -= i - 1;
            naive->stack[naive->count - 1].count++;
            naive_reduce(naive);
        }
    }
}

static void expect_as_printed(uint32_t k, uint32_t repeats, const uint32_t *stream, size_t count)
{
    struct naive naive = {.stack = malloc(count * sizeof(*naive.stack)), .k = k, .repeats = repeats};
    struct loop_table table = {0};
    struct nlr_sequence sequence = reduce(&table, k, repeats, stream, count);

    for (size_t i = 0; i < count; i++) {
        naive.stack[naive.count++] = nlr_symbol(stream[i]);
        naive_reduce(&naive);
    }
    cr_assert_eq(sequence.count, naive.count, "K=%u: %zu entries, Procedure 1 gives %zu", k, sequence.count,
                 naive.count);
    cr_assert(nlr_same(sequence.elements, naive.stack, naive.count));
    cr_assert_eq(table.count, naive.table.count);
    free(sequence.elements);
    free(naive.stack);
    loop_table_release(&table);
    loop_table_release(&naive.table);
}

Test(nlr, is_procedure_1_as_printed)
{
    uint32_t stream[600];

    for (uint64_t round = 0; round < 1500; round++) {
        uint64_t seed = round;
        size_t count = random_stream(&seed, 1 + (uint32_t)(round % 5), 50 + round % 550, stream);

        expect_as_printed(bodies[round % ARRAY_SIZE(bodies)], round % 7 ? 3 : 2 + (uint32_t)round % 3, stream,
                          count);
    }
}

Test(nlr, is_procedure_1_on_noise)
{
    uint32_t stream[300];

    for (uint64_t round = 0; round < 500; round++) {
        uint64_t seed = round * 77;

        for (size_t i = 0; i < ARRAY_SIZE(stream); i++)
            stream[i] = random_below(&seed, 2 + (uint32_t)round % 2);
        expect_as_printed(bodies[round % ARRAY_SIZE(bodies)], 3, stream, ARRAY_SIZE(stream));
    }
}

/* ---------------------------------------------------------------------------------- what must hold always */

Test(nlr, loses_nothing)
{
    uint32_t *stream = malloc(20000 * sizeof(*stream));

    for (uint64_t round = 0; round < 120; round++) {
        uint64_t seed = round + 1000;
        size_t count = random_stream(&seed, 2 + (uint32_t)(round % 30), 20000, stream);
        uint32_t k = bodies[round % ARRAY_SIZE(bodies)];
        struct nlr_options options = {k, 3};
        struct loop_table table = {0};
        struct nlr_sequence sequence = reduce(&table, k, 3, stream, count), *sequences[] = {&sequence};
        size_t before = sequence.count;

        expect_expansion(&table, &sequence, stream, count);
        cr_assert_eq(known_loops_apply(&table, &options, sequences, 1), 0);
        cr_assert_leq(sequence.count, before);
        expect_expansion(&table, &sequence, stream, count);
        free(sequence.elements);
        loop_table_release(&table);
    }
    free(stream);
}

Test(nlr, refuses_options_out_of_range)
{
    static const struct nlr_options wrong[] = {
        {0, 3}, {NLR_MAX_BODY + 1, 3}, {10, 1}, {10, NLR_MAX_REPEATS + 1}};
    struct loop_table table = {0};
    struct nlr_builder *builder = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        cr_assert_eq(nlr_builder_new(&table, &wrong[i], &builder), -EINVAL);
    cr_assert_null(builder);
}

static void expect_text(const char *stream, const char *expected)
{
    struct loop_table table = {0};
    struct nlr_sequence sequence = reduce_text(&table, stream);
    char *text = sequence_text(&table, &sequence);

    cr_assert_str_eq(text, expected);
    free(text);
    free(sequence.elements);
    loop_table_release(&table);
}

Test(nlr, three_equal_blocks_make_a_loop)
{
    expect_text("ABAB", "A B A B");
    expect_text("ABABAB", "L0^3");
    expect_text("CABABABABD", "C L0^4 D");
    expect_text("AAABAAABAAAB", "L1^3"); /* L0 = A, L1 = L0^3 B */
    expect_text("AAABAAAABAAAB", "L0^3 B L0^4 B L0^3 B");
}

Test(nlr, bodies_longer_than_k_stay)
{
    expect_text("ABCDEFGHIJABCDEFGHIJABCDEFGHIJ", "L0^3");
    expect_text("ABCDEFGHIJKABCDEFGHIJKABCDEFGHIJK",
                "A B C D E F G H I J K A B C D E F G H I J K A B C D E F G H I J K");
}

Test(nlr, lost_places_are_equal_to_nothing)
{
    expect_text("A?A?A?A?", "A ? A ? A ? A ?");
    expect_text("AAA?AAA", "L0^3 ? L0^3");
}

/* A loop of a hundred million iterations is one entry, and an outer loop costs nothing either. */
Test(nlr, memory_is_bounded_by_the_output)
{
    struct loop_table table = {0};
    struct nlr_options options = {10, 3};
    struct nlr_builder *builder = NULL;

    cr_assert_eq(nlr_builder_new(&table, &options, &builder), 0);
    for (uint32_t i = 0; i < 3000000; i++) {
        cr_assert_eq(nlr_builder_push(builder, nlr_symbol(i % 3 ? 1 : 2)), 0);
        cr_assert_leq(nlr_builder_count(builder), 64);
    }
    cr_assert_leq(table.count, 4);
    nlr_builder_free(builder);
    loop_table_release(&table);
}

static double seconds_for(size_t count, uint32_t k)
{
    uint32_t *stream = malloc(count * sizeof(*stream));
    struct loop_table table = {0};
    struct nlr_sequence sequence;
    struct timespec begin, end;
    uint64_t seed = 5;

    for (size_t i = 0; i < count; i++)
        stream[i] = i % 2 ? 0 : random_below(&seed, 4);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    sequence = reduce(&table, k, 3, stream, count);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    free(sequence.elements);
    free(stream);
    loop_table_release(&table);
    return (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
}

/* Ten times the events must not cost a hundred times as much, nor K = 1000 a hundred times K = 10. */
Test(nlr, takes_linear_time)
{
    double small = seconds_for(100000, 10) + 0.002;

    cr_assert_lt(seconds_for(1000000, 10), 40 * small);
    cr_assert_lt(seconds_for(100000, 1000), 80 * small);
}

/* ------------------------------------------------------------------------------------- the two-block rule */

enum { MOST_SEQUENCES = 8 };

/* Reduces the texts in their order with one table, applies the rule, numbers the loops; expects the
 * summaries. */
static void expect_known(const char *const *texts, const char *const *expected, size_t count, bool backwards)
{
    struct loop_table table = {0};
    struct nlr_options options = {NLR_DEFAULT_BODY, NLR_STRICT_REPEATS};
    struct nlr_sequence sequences[MOST_SEQUENCES], *pointers[MOST_SEQUENCES];

    for (size_t i = 0; i < count; i++) {
        size_t at = backwards ? count - 1 - i : i;

        sequences[at] = reduce_text(&table, texts[at]);
        pointers[at] = &sequences[at];
    }
    cr_assert_eq(known_loops_apply(&table, &options, pointers, count), 0);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(loop_table_number(&table, sequences[i].elements, sequences[i].count), 0);
    for (size_t i = 0; i < count; i++) {
        char *text = sequence_text(&table, &sequences[i]);

        cr_assert_str_eq(text, expected[i], "sequence %zu is %s, not %s", i, text, expected[i]);
        free(text);
        free(sequences[i].elements);
    }
    loop_table_release(&table);
}

/* Table 3.3: I init, K rank, Z size, S send, R receive, F finalize; ranks 0 and 3 have half as many
 * iterations. */
Test(known_loops, table_3_3_of_the_dissertation)
{
    static const char *const ranks[] = {"IKZSRSRF", "IKZRSRSRSRSF", "IKZSRSRSRSRF", "IKZRSRSF"};
    static const char *const expected[] = {"I K Z L0^2 F", "I K Z L1^4 F", "I K Z L0^4 F", "I K Z L1^2 F"};

    expect_known(ranks, expected, 4, false);
    expect_known(ranks, expected, 4, true);
}

Test(known_loops, do_not_depend_on_the_order_of_threads)
{
    static const char *const texts[] = {"ABBABBABBX", "BBBB", "ABBABB", "XBBX"};
    static const char *const expected[] = {"L0^3 X", "L1^4", "L0^2", "X L1^2 X"};

    expect_known(texts, expected, 4, false);
    expect_known(texts, expected, 4, true);
}

Test(known_loops, two_blocks_of_an_unknown_body_stay)
{
    static const char *const texts[] = {"ABABX", "CCC"};
    static const char *const expected[] = {"A B A B X", "L0^3"};

    expect_known(texts, expected, 2, false);
}

/* What the rule folds may repeat itself: A L0^2 three times is a loop, and then two of it elsewhere are one
 * too. */
Test(known_loops, go_on_until_nothing_changes)
{
    static const char *const texts[] = {"BBBX", "ABBCABBCABBC", "YABBCABBC"};
    static const char *const expected[] = {"L0^3 X", "L1^3", "Y L1^2"};

    expect_known(texts, expected, 3, false);
}

Test(known_loops, equal_streams_give_equal_summaries)
{
    uint32_t streams[6][400];
    size_t counts[6];

    for (uint64_t round = 0; round < 300; round++) {
        struct loop_table table = {0};
        struct nlr_options options = {bodies[round % ARRAY_SIZE(bodies)], 3};
        struct nlr_sequence sequences[12], *pointers[12];
        uint64_t seed = round + 5000;

        for (size_t i = 0; i < 6; i++)
            counts[i] = random_stream(&seed, 3, 20 + random_below(&seed, 380), streams[i]);
        /* Every stream twice, as a normal and a faulty run that do the same would have it. */
        for (size_t i = 0; i < 12; i++) {
            sequences[i] = reduce(&table, options.max_body, 3, streams[i % 6], counts[i % 6]);
            pointers[i] = &sequences[i];
        }
        cr_assert_eq(known_loops_apply(&table, &options, pointers, 12), 0);
        for (size_t i = 0; i < 6; i++) {
            expect_expansion(&table, &sequences[i], streams[i], counts[i]);
            cr_assert_eq(sequences[i].count, sequences[i + 6].count);
            cr_assert(nlr_same(sequences[i].elements, sequences[i + 6].elements, sequences[i].count));
        }
        for (size_t i = 0; i < 12; i++)
            free(sequences[i].elements);
        loop_table_release(&table);
    }
}

/* The summaries of the streams, read in one order or the other, as one text. */
static char *summaries_text(uint32_t streams[][64], const size_t *counts, size_t count, uint32_t k,
                            bool backwards)
{
    struct loop_table table = {0};
    struct nlr_options options = {k, 3};
    struct nlr_sequence sequences[MOST_SEQUENCES], *pointers[MOST_SEQUENCES];
    char *all = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&all, &size);

    for (size_t i = 0; i < count; i++) {
        size_t at = backwards ? count - 1 - i : i;

        sequences[at] = reduce(&table, k, 3, streams[at], counts[at]);
        pointers[i] = &sequences[at];
    }
    cr_assert_eq(known_loops_apply(&table, &options, pointers, count), 0);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(loop_table_number(&table, sequences[i].elements, sequences[i].count), 0);
    for (size_t i = 0; i < count; i++) {
        char *text = sequence_text(&table, &sequences[i]);

        expect_expansion(&table, &sequences[i], streams[i], counts[i]);
        fprintf(out, "%s\n", text);
        free(text);
        free(sequences[i].elements);
    }
    fclose(out);
    loop_table_release(&table);
    return all;
}

Test(known_loops, give_the_same_in_any_order_of_random_threads)
{
    uint32_t streams[MOST_SEQUENCES][64];
    size_t counts[MOST_SEQUENCES];

    for (uint64_t round = 0; round < 6000; round++) {
        uint64_t seed = round + 90000;
        size_t count = 2 + random_below(&seed, MOST_SEQUENCES - 1);
        char *forwards, *backwards;

        for (size_t i = 0; i < count; i++) {
            counts[i] =
                random_stream(&seed, 2 + (uint32_t)round % 3, 4 + random_below(&seed, 60), streams[i]);
            for (size_t at = 0; at < counts[i]; at++)
                streams[i][at]++; /* letters begin at 1 */
        }
        forwards = summaries_text(streams, counts, count, bodies[round % 6], false);
        backwards = summaries_text(streams, counts, count, bodies[round % 6], true);
        cr_assert_str_eq(forwards, backwards);
        free(forwards);
        free(backwards);
    }
}

/* Whatever a sequence was made by: neighbouring loops of one body are one. */
Test(known_loops, neighbours_are_added_up)
{
    struct loop_table table = {0};
    struct nlr_options options = {NLR_DEFAULT_BODY, NLR_STRICT_REPEATS};
    struct nlr_sequence sequence = reduce_text(&table, "ABABAB"), other = reduce_text(&table, "ABABCABX");
    struct nlr_sequence *sequences[] = {&other};
    char *text;

    other.elements[4] = sequence.elements[0]; /* A B A B L0^3 A B X */
    cr_assert_eq(known_loops_apply(&table, &options, sequences, 1), 0);
    text = sequence_text(&table, &other);
    cr_assert_str_eq(text, "L0^6 X");
    free(text);
    free(sequence.elements);
    free(other.elements);
    loop_table_release(&table);
}

/* `level` + 1 loops in each other, each of two blocks of 1000 entries; every block ends in the next loop. */
static size_t put_deep_loop(uint32_t *stream, int level)
{
    size_t count = 0;

    for (int block = 0; block < 2; block++) {
        for (uint32_t i = 0; i < (level ? 999u : 1000u); i++)
            stream[count++] = 1000u * (uint32_t)level + i + 1;
        if (level)
            count += put_deep_loop(stream + count, level - 1);
    }
    return count;
}

/* What is known of the top of the stack follows it, up and, when the loops close, down by 6000 entries at
 * once. */
Test(nlr, stacks_that_grow_and_shrink_far)
{
    static uint32_t stream[40000];

    for (uint32_t before = 5800; before < 6400; before += 43) {
        struct loop_table table = {0};
        struct nlr_sequence sequence;
        size_t count = 0;

        for (; count < before; count++)
            stream[count] = 10000 + (uint32_t)count; /* nothing repeats */
        count += put_deep_loop(stream + count, 2);
        sequence = reduce(&table, 1000, 2, stream, count);
        cr_assert_eq(sequence.count, before + 1);
        cr_assert_eq(sequence.elements[before].kind, NLR_LOOP);
        cr_assert_eq(sequence.elements[before].count, 2);
        expect_expansion(&table, &sequence, stream, count);
        free(sequence.elements);
        loop_table_release(&table);
    }
}
