/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "analyzer/ranking/ranking_votes.h"
#include "base/array.h"

enum { MOST = 4 };

/* An object's entries with their frequencies: entry 1 that often, entry 2, and so on. */
static struct attribute_set counts(struct attribute_table *table, const uint64_t *frequencies, size_t count)
{
    struct attribute_set set = {calloc(count + 1, sizeof(*set.ids)), 0};

    for (size_t i = 0; i < count; i++) {
        const struct attribute attribute = {.kind = {ATTRIBUTE_SINGLE, FREQUENCY_ACTUAL},
                                            .entries = {{NLR_SYMBOL, (uint32_t)i + 1}},
                                            .frequency = frequencies[i]};

        if (frequencies[i])
            cr_assert_eq(attribute_table_add(table, &attribute, &set.ids[set.count++]), 0);
    }
    return set;
}

/* How much one object changed from normal runs to another one. */
static double own_change(const uint64_t normals[][MOST], size_t runs, const uint64_t faulty[MOST], long spare)
{
    struct attribute_table table = {0};
    struct attribute_set sets[5];
    struct run_context contexts[5];
    double change;

    for (size_t i = 0; i <= runs; i++) {
        sets[i] = counts(&table, i < runs ? normals[i] : faulty, MOST);
        contexts[i] = (struct run_context){.counts = &sets[i]};
    }
    cr_assert_eq(votes_own_change(&table, contexts, runs, spare, &contexts[runs], 0, &change), 0);
    for (size_t i = 0; i <= runs; i++)
        attribute_set_release(&sets[i]);
    attribute_table_release(&table);
    return change;
}

static double evidence(double low, double high)
{
    return (1 - low / high) * (1 - exp(-pow(sqrt(high) - sqrt(low), 2) / 2));
}

Test(ranking_votes, a_change_counts_by_its_size_and_evidence)
{
    const uint64_t normal[][MOST] = {{1, 100, 16, 0}};

    cr_assert_eq(own_change(normal, 1, normal[0], -1), 0);
    cr_assert_float_eq(own_change(normal, 1, (uint64_t[MOST]){1, 100, 7, 0}, -1), evidence(7, 16) / 3, 1e-12);
    cr_assert_float_eq(own_change(normal, 1, (uint64_t[MOST]){0, 100, 16, 3}, -1),
                       (evidence(0, 1) + evidence(0, 3)) / 4, 1e-12);
    cr_assert_gt(own_change(normal, 1, (uint64_t[MOST]){1, 0, 16, 0}, -1),
                 2 * own_change(normal, 1, (uint64_t[MOST]){0, 100, 16, 0}, -1));
}

Test(ranking_votes, within_the_range_of_normal_runs_is_no_change)
{
    const uint64_t normals[][MOST] = {{5, 1, 0, 1}, {9, 1, 0, 1}, {2, 1, 4, 1}};

    cr_assert_eq(own_change(normals, 3, (uint64_t[MOST]){7, 1, 3, 1}, -1), 0);
    cr_assert_float_eq(own_change(normals, 3, (uint64_t[MOST]){12, 1, 0, 1}, -1), evidence(9, 12) / 4, 1e-12);
    /* Without the second run, seven is outside; without the third one, that the third entry may be there. */
    cr_assert_float_eq(own_change(normals, 3, (uint64_t[MOST]){7, 1, 3, 1}, 1), evidence(5, 7) / 4, 1e-12);
    cr_assert_float_eq(own_change(normals, 3, (uint64_t[MOST]){7, 1, 3, 1}, 2), evidence(0, 3) / 4, 1e-12);
}

/* Threads of one process have entries in common: their set has several frequencies of one entry. */
Test(ranking_votes, frequencies_of_one_entry_add_up)
{
    struct attribute_table table = {0};
    const uint64_t one[] = {4}, other[] = {6}, both[] = {10};
    struct attribute_set a = counts(&table, one, 1), b = counts(&table, other, 1),
                         sum = counts(&table, both, 1);
    struct attribute_set pair[] = {a, b}, united;
    struct run_context normal, faulty;
    double change;

    cr_assert_eq(attribute_set_union(pair, 2, &united), 0);
    cr_assert_eq(united.count, 2);
    normal = (struct run_context){.counts = &united};
    faulty = (struct run_context){.counts = &sum};
    cr_assert_eq(votes_own_change(&table, &normal, 1, -1, &faulty, 0, &change), 0);
    cr_assert_eq(change, 0);
    attribute_set_release(&a);
    attribute_set_release(&b);
    attribute_set_release(&sum);
    attribute_set_release(&united);
    attribute_table_release(&table);
}

Test(ranking_votes, jsm_d_is_the_distance_from_the_range)
{
    double first[] = {0.2, 0.5, 1}, second[] = {0.4, 0.5, 0}, faulty[] = {0.3, 0.75, 1}, changes[3];
    const struct run_context normals[] = {{.similarity = {3, first}}, {.similarity = {3, second}}};
    const struct run_context subject = {.similarity = {3, faulty}};
    struct similarity difference;

    cr_assert_eq(votes_difference(normals, 2, -1, &subject, &difference), 0);
    cr_assert_eq(difference.values[0], 0);
    cr_assert_eq(difference.values[1], 0.25);
    cr_assert_eq(difference.values[2], 0);
    votes_relations(&difference, changes);
    cr_assert_eq(changes[0], 0.125);
    cr_assert_eq(changes[1], 0);
    cr_assert_eq(changes[2], 0.125);
    similarity_release(&difference);
    cr_assert_eq(votes_difference(normals, 2, 0, &subject, &difference), 0);
    cr_assert_eq(difference.values[2], 1);
    similarity_release(&difference);
}

Test(ranking_votes, who_stands_out_does_so_among_peers)
{
    /* 0, 1 and 2 are peers, and so are 3, 4 and 5; the two groups have nothing in common. */
    double values[15] = {[0] = 1, [1] = 1, [5] = 1, [12] = 1, [13] = 1, [14] = 1};
    const struct similarity peers = {6, values};
    double all[] = {0.5, 0.5, 0.5, 0, 0, 0}, one[] = {0.5, 0, 0, 0, 0, 0}, half[] = {0.5, 0.25, 0, 0, 0, 0};
    double two[] = {0.5, 0.5}, similar[] = {1}, confidence;

    cr_assert_eq(votes_stand_out(all, 6, &peers, &confidence), 0);
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        cr_assert_eq(all[i], 0);
    cr_assert_eq(confidence, 0);
    cr_assert_eq(votes_stand_out(one, 6, &peers, &confidence), 0);
    cr_assert_eq(one[0], 0.5);
    cr_assert_eq(confidence, 1);
    cr_assert_eq(votes_stand_out(half, 6, &peers, &confidence), 0);
    cr_assert_float_eq(half[0], 0.5 * 0.75, 1e-12);
    cr_assert_float_eq(half[1], 0.25 * 0.5, 1e-12);
    cr_assert_gt(confidence, 0.5);
    cr_assert_lt(confidence, 1);
    cr_assert_eq(votes_stand_out(two, 2, &(struct similarity){2, similar}, &confidence), 0);
    cr_assert_eq(two[0], 0.5);
}

Test(ranking_votes, relations_alone_are_no_change)
{
    cr_assert_eq(votes_of_changes(1, 0), 0);
    cr_assert_eq(votes_of_changes(0, 1), 0.5);
    cr_assert_eq(votes_of_changes(1, 1), 1);
}
