/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "analyzer/cluster/attributes.h"
#include "base/array.h"
#include "tests/unit/analyzer/streams.h"

static const struct attribute_kind kinds[] = {
    {ATTRIBUTE_SINGLE, FREQUENCY_ACTUAL}, {ATTRIBUTE_SINGLE, FREQUENCY_LOG10},
    {ATTRIBUTE_SINGLE, FREQUENCY_NONE},   {ATTRIBUTE_DOUBLE, FREQUENCY_ACTUAL},
    {ATTRIBUTE_DOUBLE, FREQUENCY_LOG10},  {ATTRIBUTE_DOUBLE, FREQUENCY_NONE},
};

Test(attributes, kinds_have_the_names_of_the_papers)
{
    static const char *const names[] = {"sing.actual", "sing.log10", "sing.noFreq",
                                        "doub.actual", "doub.log10", "doub.noFreq"};
    struct attribute_kind kind;

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        cr_assert_str_eq(attribute_kind_name(kinds[i]), names[i]);
        cr_assert_eq(attribute_kind_parse(names[i], &kind), 0);
        cr_assert(kind.unit == kinds[i].unit && kind.frequency == kinds[i].frequency, "%s", names[i]);
    }
    cr_assert_eq(attribute_kind_parse("Double.NOFREQ", &kind), 0);
    cr_assert(kind.unit == ATTRIBUTE_DOUBLE && kind.frequency == FREQUENCY_NONE);
    cr_assert_eq(attribute_kind_parse("single.none", &kind), 0);
    cr_assert(kind.unit == ATTRIBUTE_SINGLE && kind.frequency == FREQUENCY_NONE);
}

Test(attributes, other_names_are_refused)
{
    static const char *const names[] = {"",        ".",          "sing",     "sing.",
                                        ".actual", "sin.actual", "sing.log", "sing.log100"};
    struct attribute_kind kind;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        cr_expect_eq(attribute_kind_parse(names[i], &kind), -EINVAL, "%s", names[i]);
}

static void print_entry(FILE *stream, const struct attribute_entry *entry)
{
    if (entry->kind == NLR_SYMBOL)
        fputc((int)('@' + entry->id), stream);
    else
        fprintf(stream, "L%" PRIu32, entry->id);
}

/* The attributes of a text (see reduce_text), as "A:1 AL0:1", in the order in which they were met. */
static const char *attributes_of(struct attribute_kind kind, const char *text)
{
    static char result[512];
    struct loop_table loops = {0};
    struct attribute_table table = {0};
    struct attribute_set set;
    struct nlr_sequence sequence = reduce_text(&loops, text);
    FILE *stream = fmemopen(result, sizeof(result), "w");

    cr_assert_eq(attribute_set_of(&table, kind, &sequence, &set), 0);
    cr_assert_eq(set.count, table.count);
    for (size_t i = 0; i < set.count; i++) {
        const struct attribute *attribute = &table.attributes[set.ids[i]];

        cr_assert_eq(set.ids[i], i);
        fputs(i ? " " : "", stream);
        for (unsigned part = 0; part <= kind.unit; part++)
            print_entry(stream, &attribute->entries[part]);
        fprintf(stream, ":%" PRIu64, attribute->frequency);
    }
    fputc(0, stream);
    fclose(stream);
    attribute_set_release(&set);
    attribute_table_release(&table);
    loop_table_release(&loops);
    free(sequence.elements);
    return result;
}

Test(attributes, entries_are_summed_and_loops_weighted_by_their_iterations)
{
    /* A L0^4 C L0^3 A, L0 = [B] */
    cr_expect_str_eq(attributes_of(kinds[0], "ABBBBCBBBA"), "A:2 L0:7 C:1");
    cr_expect_str_eq(attributes_of(kinds[2], "ABBBBCBBBA"), "A:0 L0:0 C:0");
    /* A loop in a loop is part of the body, not an entry. */
    cr_expect_str_eq(attributes_of(kinds[0], "ABBBCABBBCABBBC"), "L1:3");
    cr_expect_str_eq(attributes_of(kinds[0], ""), "");
}

Test(attributes, log10_is_its_whole_part)
{
    cr_expect_str_eq(attributes_of(kinds[1], "AAAAAAAAA"), "L0:0");
    cr_expect_str_eq(attributes_of(kinds[1], "AAAAAAAAAA"), "L0:1");
    cr_expect_str_eq(attributes_of(kinds[1], "AAAAABAAAAAC"), "L0:1 B:0 C:0");
}

Test(attributes, pairs_count_once_a_place)
{
    /* A L0^4 C L0^3 C */
    cr_expect_str_eq(attributes_of(kinds[3], "ABBBBCBBBC"), "AL0:1 L0C:2 CL0:1");
    cr_expect_str_eq(attributes_of(kinds[5], "ABBBBCBBBC"), "AL0:0 L0C:0 CL0:0");
    cr_expect_str_eq(attributes_of(kinds[3], "A"), "");
}

Test(attributes, lost_events_are_none_and_no_pair_spans_them)
{
    cr_expect_str_eq(attributes_of(kinds[0], "A?B?"), "A:1 B:1");
    cr_expect_str_eq(attributes_of(kinds[3], "AB?BA?"), "AB:1 BA:1");
    cr_expect_str_eq(attributes_of(kinds[3], "A?B"), "");
}

Test(attributes, counts_saturate)
{
    struct nlr_element elements[] = {{NLR_LOOP, 0, UINT64_MAX - 1}, {NLR_LOOP, 0, 2}};
    struct nlr_sequence sequence = {elements, 2};
    struct attribute_table table = {0};
    struct attribute_set set;

    cr_assert_eq(attribute_set_of(&table, kinds[0], &sequence, &set), 0);
    cr_assert_eq(table.attributes[set.ids[0]].frequency, UINT64_MAX);
    attribute_set_release(&set);
    cr_assert_eq(attribute_set_of(&table, kinds[1], &sequence, &set), 0);
    cr_assert_eq(table.attributes[set.ids[0]].frequency, 19);
    attribute_set_release(&set);
    attribute_table_release(&table);
}

/* A set contains an id exactly if some entry of the sequence, counted one by one, says so. */
Test(attributes, threads_share_ids)
{
    struct loop_table loops = {0};
    struct attribute_table table = {0};
    uint64_t seed = 5;

    for (size_t round = 0; round < 200; round++) {
        uint32_t stream[64];
        size_t count = random_stream(&seed, 4, ARRAY_SIZE(stream), stream), known = 0;
        struct nlr_sequence sequence = reduce(&loops, 3, 3, stream, count);
        struct attribute_set set;

        cr_assert_eq(attribute_set_of(&table, kinds[0], &sequence, &set), 0);
        for (size_t i = 0; i < sequence.count; i++) {
            struct attribute wanted = {.kind = kinds[0],
                                       .entries = {{sequence.elements[i].kind, sequence.elements[i].id}}};
            uint32_t id;
            size_t before = table.count, at = 0;

            for (size_t j = 0; j < sequence.count; j++)
                if (sequence.elements[j].kind == sequence.elements[i].kind &&
                    sequence.elements[j].id == sequence.elements[i].id) {
                    wanted.frequency += sequence.elements[j].count;
                    known += j == i && wanted.frequency == sequence.elements[j].count;
                }
            cr_assert_eq(attribute_table_add(&table, &wanted, &id), 0);
            cr_assert_eq(table.count, before);
            while (at < set.count && set.ids[at] != id)
                at++;
            cr_assert_lt(at, set.count);
        }
        cr_assert_eq(known, set.count);
        attribute_set_release(&set);
        free(sequence.elements);
    }
    attribute_table_release(&table);
    loop_table_release(&loops);
}

Test(attributes, union_of_sets)
{
    uint32_t a[] = {1, 4, 9}, b[] = {0, 4, 5};
    struct attribute_set sets[] = {{a, 3}, {b, 3}, {NULL, 0}}, all;
    static const uint32_t expected[] = {0, 1, 4, 5, 9};

    cr_assert_eq(attribute_set_union(sets, 3, &all), 0);
    cr_assert_eq(all.count, 5);
    cr_assert_arr_eq(all.ids, expected, sizeof(expected));
    attribute_set_release(&all);
    cr_assert_eq(attribute_set_union(sets + 2, 1, &all), 0);
    cr_assert_eq(all.count, 0);
    attribute_set_release(&all);
}
