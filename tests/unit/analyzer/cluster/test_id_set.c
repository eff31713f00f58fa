/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "analyzer/cluster/id_set.h"
#include "tests/unit/analyzer/attribute_sets.h"
#include "tests/unit/analyzer/streams.h"

static struct id_set with_room(size_t words)
{
    return (struct id_set){calloc(words + 1, sizeof(struct id_word)), 0};
}

static bool has(const struct id_set *set, uint32_t id)
{
    for (size_t i = 0; i < set->word_count; i++)
        if (set->words[i].index == id / 64)
            return set->words[i].bits >> id % 64 & 1;
    return false;
}

static void check_pair(const struct attribute_set *a, const struct attribute_set *b, uint32_t most)
{
    struct id_set left, right, copy, shared, all;
    size_t count = shared_count(a, b);

    cr_assert_eq(id_set_of(a->ids, a->count, &left), 0);
    cr_assert_eq(id_set_of(b->ids, b->count, &right), 0);
    cr_assert_eq(id_set_copy(&left, &copy), 0);
    shared = with_room(left.word_count < right.word_count ? left.word_count : right.word_count);
    all = with_room(left.word_count + right.word_count);
    id_set_intersect(&left, &right, &shared);
    id_set_unite(&left, &right, &all);
    cr_assert(id_set_equal(&copy, &left) && id_set_hash(&copy) == id_set_hash(&left));
    id_set_subtract(&copy, &right);
    for (uint32_t id = 0; id < most; id++) {
        bool in_a = set_has(a, id), in_b = set_has(b, id);

        cr_assert(has(&left, id) == in_a && has(&shared, id) == (in_a && in_b) &&
                  has(&all, id) == (in_a || in_b) && has(&copy, id) == (in_a && !in_b));
    }
    cr_assert_eq(id_set_count(&shared), count);
    cr_assert_eq(id_set_count(&all), a->count + b->count - count);
    cr_assert_eq(id_set_within(&left, &right), count == a->count);
    cr_assert_eq(id_set_disjoint(&left, &right), count == 0);
    cr_assert_eq(id_set_equal(&left, &right), count == a->count && count == b->count);
    cr_assert(id_set_within(&shared, &left) && id_set_within(&left, &all));
    for (size_t i = 0; i < all.word_count; i++)
        cr_assert(all.words[i].bits && (!i || all.words[i - 1].index < all.words[i].index));
    for (size_t i = 0; i < shared.word_count; i++)
        cr_assert_neq(shared.words[i].bits, 0);
    id_set_release(&left);
    id_set_release(&right);
    id_set_release(&copy);
    id_set_release(&shared);
    id_set_release(&all);
}

Test(id_set, operations)
{
    uint64_t seed = 4;

    for (uint32_t round = 0; round < 300; round++) {
        uint32_t most = 1 + random_below(&seed, 500);
        uint32_t percent = random_below(&seed, 2) ? 1 : random_below(&seed, 101);
        struct attribute_set *sets = random_sets(&seed, 2, most, percent);

        check_pair(&sets[0], &sets[1], most);
        sets_free(sets, 2);
    }
}

Test(id_set, ids_come_back)
{
    static const uint32_t ids[] = {0, 63, 64, 700, UINT32_MAX - 1, UINT32_MAX};
    uint32_t back[6];
    struct id_set set;

    cr_assert_eq(id_set_of(ids, 6, &set), 0);
    cr_assert_eq(set.word_count, 4);
    cr_assert_eq(id_set_ids(&set, back), 6);
    cr_assert_arr_eq(back, ids, sizeof(ids));
    id_set_release(&set);
}
