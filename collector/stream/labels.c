/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stream/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* Ranks come from an environment variable that anybody can set: a senseless one must not cost gigabytes. */
#define MAX_RANK (1 << 24)

void labels_release(struct labels *labels)
{
    free(labels->holders);
    *labels = (struct labels){0};
}

static int make_room(struct labels *labels, size_t number)
{
    if (number < labels->count)
        return 0;
    if (array_reserve(&labels->holders, &labels->capacity, number + 1))
        return -ENOMEM;
    memset(labels->holders + labels->count, 0, (number + 1 - labels->count) * sizeof(*labels->holders));
    labels->count = number + 1;
    return 0;
}

static int take_lowest(struct labels *labels, int64_t process_id, unsigned *ret_number)
{
    while (labels->first_free < labels->count && labels->holders[labels->first_free].process_id)
        labels->first_free++;
    if (make_room(labels, labels->first_free))
        return -ENOMEM;
    labels->holders[labels->first_free] = (struct label_holder){process_id, false};
    *ret_number = (unsigned)labels->first_free;
    return 0;
}

int labels_assign(struct labels *labels, int64_t process_id, int rank, unsigned *ret_number,
                  int64_t *ret_moved, unsigned *ret_moved_to)
{
    struct label_holder displaced;

    *ret_moved = 0;
    *ret_moved_to = 0;
    if (rank < 0 || rank > MAX_RANK)
        return take_lowest(labels, process_id, ret_number);
    if (make_room(labels, (size_t)rank))
        return -ENOMEM;
    displaced = labels->holders[rank];
    if (displaced.process_id && displaced.ranked) /* a second process of the rank: a child, say */
        return take_lowest(labels, process_id, ret_number);
    labels->holders[rank] = (struct label_holder){process_id, true};
    *ret_number = (unsigned)rank;
    if (!displaced.process_id)
        return 0;
    *ret_moved = displaced.process_id;
    return take_lowest(labels, displaced.process_id, ret_moved_to);
}

void labels_free(struct labels *labels, unsigned number)
{
    labels->holders[number] = (struct label_holder){0};
    if (number < labels->first_free)
        labels->first_free = number;
}
