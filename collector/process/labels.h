/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The P of the labels P.T: which process of a run has which number (see streams.h for the rule). */
#ifndef TRACECTL_COLLECTOR_PROCESS_LABELS_H
#define TRACECTL_COLLECTOR_PROCESS_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct label_holder {
    uint64_t serial;    /* what the caller knows the process by; 0: the number is free */
    int64_t process_id; /* in the store, 0: not there yet */
    bool ranked;
};

/* All zero is empty. */
struct labels {
    struct label_holder *holders; /* by number */
    size_t count, capacity;
    size_t first_free; /* no number below it is free */
};

/* A process without a rank that had to give way to one; serial 0: there is none. */
struct label_move {
    uint64_t serial;
    int64_t process_id;
    unsigned number; /* its new one */
};

void labels_release(struct labels *labels);

/* Gives a process its number: `rank` (-1: none) where no other process of the rank has it, else the lowest
 * free one. `serial` is not 0. -ENOMEM. */
int labels_assign(struct labels *labels, uint64_t serial, int rank, unsigned *ret_number,
                  struct label_move *ret_move);

/* The process with the number `*number` has turned out to have a rank: it gets that number where no other
 * process of the rank has it. -ENOMEM. */
int labels_rank(struct labels *labels, unsigned *number, int rank, struct label_move *ret_move);

/* The process with this number is in the store now. */
void labels_stored(struct labels *labels, unsigned number, int64_t process_id);

#endif
