/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/segment/function_set.h"

#include "base/array.h"

int function_set_add(struct function_set *set, uint32_t id)
{
    if (array_reserve(&set->ids, &set->capacity, set->count + 1))
        return -ENOMEM;
    set->ids[set->count++] = id;
    return 0;
}

static int compare_ids(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

    return (a > b) - (a < b);
}

void function_set_sort(struct function_set *set)
{
    size_t kept = 0;

    if (set->count)
        qsort(set->ids, set->count, sizeof(*set->ids), compare_ids);
    for (size_t i = 0; i < set->count; i++)
        if (!kept || set->ids[kept - 1] != set->ids[i])
            set->ids[kept++] = set->ids[i];
    set->count = kept;
}

void function_set_intersect(struct function_set *set, const struct function_set *other)
{
    size_t kept = 0;

    for (size_t i = 0; i < set->count; i++)
        if (function_set_has(other, set->ids[i]))
            set->ids[kept++] = set->ids[i];
    set->count = kept;
}

bool function_set_has(const struct function_set *set, uint32_t id)
{
    const uint32_t *ids = set->ids;
    size_t count = set->count;

    /* The last one that is not greater lies among the `count` from `ids` on. */
    while (count > 1) {
        size_t half = count / 2;

        ids += ids[half] <= id ? half : 0;
        count -= half;
    }
    return count && *ids == id;
}

void function_set_release(struct function_set *set)
{
    free(set->ids);
    *set = (struct function_set){0};
}
