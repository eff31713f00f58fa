/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tests/unit/analyzer/attribute_sets.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/unit/analyzer/streams.h"

struct attribute_set *random_sets(uint64_t *seed, size_t count, uint32_t attributes, uint32_t percent)
{
    struct attribute_set *sets = calloc(count + 1, sizeof(*sets));

    for (size_t i = 0; i < count; i++) {
        size_t twin = i && random_below(seed, 5) == 0 ? random_below(seed, (uint32_t)i) : i;

        sets[i].ids = calloc(attributes + 1, sizeof(*sets[i].ids));
        for (uint32_t id = 0; id < attributes; id++)
            if (twin < i ? set_has(&sets[twin], id) : random_below(seed, 100) < percent)
                sets[i].ids[sets[i].count++] = id;
    }
    return sets;
}

void sets_free(struct attribute_set *sets, size_t count)
{
    for (size_t i = 0; i < count; i++)
        attribute_set_release(&sets[i]);
    free(sets);
}

bool set_has(const struct attribute_set *set, uint32_t id)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->ids[i] == id)
            return true;
    return false;
}

size_t shared_count(const struct attribute_set *a, const struct attribute_set *b)
{
    size_t shared = 0;

    for (size_t i = 0; i < a->count; i++)
        shared += set_has(b, a->ids[i]);
    return shared;
}
