/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>

#include "base/array.h"
#include "store/segment/function_set.h"
#include "tests/unit/store/fixture.h"

#define LIMIT 100

/* Adds up to LIMIT ids below LIMIT, and says which. */
static void fill(struct generator *generator, struct function_set *set, bool has[LIMIT])
{
    size_t count = generator_below(generator, LIMIT);

    for (size_t i = 0; i < LIMIT; i++)
        has[i] = false;
    for (size_t i = 0; i < count; i++) {
        uint32_t id = generator_below(generator, LIMIT);

        has[id] = true;
        cr_assert_eq(function_set_add(set, id), 0);
    }
    function_set_sort(set);
}

static void expect(const struct function_set *set, const bool has[LIMIT])
{
    size_t count = 0;

    for (uint32_t id = 0; id < LIMIT; id++) {
        cr_assert_eq(function_set_has(set, id), has[id], "%u of %zu", id, set->count);
        count += has[id];
    }
    cr_assert_eq(set->count, count);
    cr_assert_not(function_set_has(set, UINT32_MAX));
}

Test(function_set, has_what_was_added_and_what_both_have)
{
    struct generator generator = {1};

    for (int round = 0; round < 500; round++) {
        struct function_set left = {0}, right = {0};
        bool in_left[LIMIT], in_right[LIMIT];

        fill(&generator, &left, in_left);
        fill(&generator, &right, in_right);
        expect(&left, in_left);
        for (int id = 0; id < LIMIT; id++)
            in_left[id] &= in_right[id];
        function_set_intersect(&left, &right);
        expect(&left, in_left);
        function_set_release(&left);
        function_set_release(&right);
    }
}
