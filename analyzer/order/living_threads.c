/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/order/living_threads.h"

#include <errno.h>
#include <stdlib.h>

static int compare_tids(const void *left, const void *right)
{
    const struct tracestore_thread *a = *(const struct tracestore_thread *const *)left,
                                   *b = *(const struct tracestore_thread *const *)right;

    return (a->tid > b->tid) - (a->tid < b->tid);
}

int living_threads_of(const struct tracestore_thread *threads, size_t count,
                      struct living_threads *ret_living)
{
    struct living_threads living = {0};

    living.items = calloc(count + 1, sizeof(*living.items));
    if (!living.items)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        if (threads[i].ended_ns == 0)
            living.items[living.count++] = &threads[i];
    qsort(living.items, living.count, sizeof(*living.items), compare_tids);
    *ret_living = living;
    return 0;
}

void living_threads_release(struct living_threads *living)
{
    free(living->items);
    *living = (struct living_threads){0};
}

const struct tracestore_thread *living_threads_find(const struct living_threads *living, pid_t tid)
{
    size_t low = 0, high = living->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (living->items[middle]->tid < tid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < living->count && living->items[low]->tid == tid ? living->items[low] : NULL;
}
