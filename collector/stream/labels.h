/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The P of the labels P.T: which process of a run has which number (see streams.h for the rule). */
#ifndef TRACECTL_COLLECTOR_STREAM_LABELS_H
#define TRACECTL_COLLECTOR_STREAM_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct label_holder {
    int64_t process_id; /* 0: the number is free */
    bool ranked;
};

/* All zero is empty. */
struct labels {
    struct label_holder *holders; /* by number */
    size_t count, capacity;
    size_t first_free; /* no number below it is free */
};

void labels_release(struct labels *labels);

/* Gives `process_id` its number: `rank` (-1: none) where it can, else the lowest free one. When a rank takes
 * the number of a process without one, that process gets a new number: `*ret_moved` is its id and
 * `*ret_moved_to` the number, else 0. -ENOMEM. */
int labels_assign(struct labels *labels, int64_t process_id, int rank, unsigned *ret_number,
                  int64_t *ret_moved, unsigned *ret_moved_to);

/* Gives a number back. */
void labels_free(struct labels *labels, unsigned number);

#endif
