/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers found by hashes: all of one hash, none of others, through growth and clearing. */
#include <criterion/criterion.h>

#include "base/hash_index.h"

enum { NUMBERS = 5000 };

/* How often the number is found by the hash. */
static size_t found(const struct hash_index *index, uint64_t hash, uint32_t wanted)
{
    struct hash_walk walk = hash_index_walk(index, hash);
    size_t count = 0;
    uint32_t number;

    while (hash_walk_next(&walk, &number))
        count += number == wanted;
    return count;
}

Test(hash_index, an_empty_one_has_nothing)
{
    struct hash_index index = {0};

    cr_assert_eq(found(&index, 0, 0), 0);
    hash_index_clear(&index);
    hash_index_release(&index);
}

Test(hash_index, every_number_is_found_once)
{
    struct hash_index index = {0};

    for (uint32_t i = 0; i < NUMBERS; i++)
        cr_assert_eq(hash_index_add(&index, i, i), 0);
    for (uint32_t i = 0; i < NUMBERS; i++)
        cr_assert_eq(found(&index, i, i), 1);
    cr_assert_eq(found(&index, NUMBERS, 0), 0);
    cr_assert_geq(index.size, 2 * NUMBERS);
    hash_index_release(&index);
}

Test(hash_index, numbers_of_one_hash_are_all_found)
{
    struct hash_index index = {0};

    for (uint32_t i = 0; i < 300; i++)
        cr_assert_eq(hash_index_add(&index, i % 3, i), 0);
    for (uint32_t i = 0; i < 300; i++)
        cr_assert_eq(found(&index, i % 3, i), 1);
    hash_index_release(&index);
}

Test(hash_index, hashes_that_differ_in_high_bits_are_apart)
{
    struct hash_index index = {0};
    size_t others = 0;
    uint32_t number;

    for (uint32_t i = 0; i < 1000; i++)
        cr_assert_eq(hash_index_add(&index, (uint64_t)i << 32, i), 0);
    for (uint32_t i = 0; i < 1000; i++)
        for (struct hash_walk walk = hash_index_walk(&index, (uint64_t)i << 32);
             hash_walk_next(&walk, &number);)
            others += number != i;
    cr_assert_lt(others, 10);
    hash_index_release(&index);
}

Test(hash_index, clearing_keeps_the_memory_and_reserving_makes_adding_sure)
{
    struct hash_index index = {0};
    size_t size;

    cr_assert_eq(hash_index_reserve(&index, NUMBERS), 0);
    size = index.size;
    for (uint32_t i = 0; i < NUMBERS; i++)
        cr_assert_eq(hash_index_add(&index, i * UINT64_C(0x100000001b3), i), 0);
    cr_assert_eq(index.size, size);
    hash_index_clear(&index);
    cr_assert_eq(index.size, size);
    cr_assert_eq(found(&index, 0, 0), 0);
    cr_assert_eq(hash_index_add(&index, 7, UINT32_MAX - 1), 0);
    cr_assert_eq(found(&index, 7, UINT32_MAX - 1), 1);
    hash_index_release(&index);
}
