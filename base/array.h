/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Growing arrays: a pointer, a count and a capacity that lie in the struct of whoever owns the array. */
#ifndef TRACECTL_BASE_ARRAY_H
#define TRACECTL_BASE_ARRAY_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Makes room for `wanted` items of `item_size` bytes; `*capacity` counts items. Doubles, so that appending is
 * amortised O(1). Returns 0 or -ENOMEM, and then nothing has changed. */
static inline int array_reserve_bytes(void **items, size_t *capacity, size_t wanted, size_t item_size)
{
    size_t grown = *capacity ? *capacity : 16;
    void *moved;

    if (wanted <= *capacity)
        return 0;
    while (grown < wanted) {
        if (grown > SIZE_MAX / 2)
            return -ENOMEM;
        grown *= 2;
    }
    if (grown > SIZE_MAX / item_size)
        return -ENOMEM;
    moved = realloc(*items, grown * item_size);
    if (!moved)
        return -ENOMEM;
    *items = moved;
    *capacity = grown;
    return 0;
}

#define array_reserve(items, capacity, wanted) \
    array_reserve_bytes((void **)(items), (capacity), (wanted), sizeof(**(items)))

/* Gives back the room behind `count` items, where nothing will be appended any more, or little. */
static inline void array_trim_bytes(void **items, size_t *capacity, size_t count, size_t item_size)
{
    void *moved = count && count < *capacity ? realloc(*items, count * item_size) : NULL;

    if (!moved)
        return;
    *items = moved;
    *capacity = count;
}

#define array_trim(items, capacity, count) \
    array_trim_bytes((void **)(items), (capacity), (count), sizeof(**(items)))

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#endif
