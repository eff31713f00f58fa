/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/process/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* Ranks come from an environment variable that any user can set: a senseless one must not cost gigabytes. */
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

static int assign_lowest(struct labels *labels, struct label_holder holder, unsigned *ret_number)
{
    while (labels->first_free < labels->count && labels->holders[labels->first_free].serial)
        labels->first_free++;
    if (make_room(labels, labels->first_free))
        return -ENOMEM;
    holder.ranked = false;
    labels->holders[labels->first_free] = holder;
    *ret_number = (unsigned)labels->first_free;
    return 0;
}

/* Whether a process can have the number of its rank. */
static bool is_open(const struct labels *labels, int rank)
{
    return rank >= 0 && rank <= MAX_RANK &&
           ((size_t)rank >= labels->count || !labels->holders[rank].serial || !labels->holders[rank].ranked);
}

static int take_rank(struct labels *labels, struct label_holder holder, int rank, struct label_move *ret_move)
{
    struct label_holder displaced;

    if (make_room(labels, (size_t)rank))
        return -ENOMEM;
    displaced = labels->holders[rank];
    holder.ranked = true;
    labels->holders[rank] = holder;
    if (!displaced.serial)
        return 0;
    ret_move->serial = displaced.serial;
    ret_move->process_id = displaced.process_id;
    return assign_lowest(labels, displaced, &ret_move->number);
}

int labels_assign(struct labels *labels, uint64_t serial, int rank, unsigned *ret_number,
                  struct label_move *ret_move)
{
    const struct label_holder holder = {.serial = serial};

    *ret_move = (struct label_move){0};
    if (!is_open(labels, rank)) /* or a second process of the rank: a child, say */
        return assign_lowest(labels, holder, ret_number);
    *ret_number = (unsigned)rank;
    return take_rank(labels, holder, rank, ret_move);
}

int labels_rank(struct labels *labels, unsigned *number, int rank, struct label_move *ret_move)
{
    struct label_holder holder = labels->holders[*number];

    *ret_move = (struct label_move){0};
    if (!is_open(labels, rank))
        return 0;
    labels->holders[*number] = (struct label_holder){0};
    if (*number < labels->first_free)
        labels->first_free = *number;
    *number = (unsigned)rank;
    return take_rank(labels, holder, rank, ret_move);
}

void labels_stored(struct labels *labels, unsigned number, int64_t process_id)
{
    labels->holders[number].process_id = process_id;
}
