/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers that a writer gives to what it registers, before the store does.
 *
 * A row of the catalog is written by the flush that first needs it, so an id must be known before the row is
 * there. The writer takes the number that the row will get if nobody else adds one: next after the largest.
 * The row's real id comes with its insertion; it is another one when another recorder was faster, and then
 * the number is translated wherever it is written. Events in memory always have numbers.
 *
 * Ids that were in the store when the run began are their own numbers; no number taken later is one of them.
 */
#ifndef TRACESTORE_NUMBERING_H
#define TRACESTORE_NUMBERING_H

#include <stdbool.h>
#include <stdint.h>

#include "store/segment/segment.h"

/* What has numbers. */
enum number_kind { NUMBER_IMAGE, NUMBER_FUNCTION, NUMBER_SITE, NUMBER_PROCESS, NUMBER_THREAD, NUMBER_KINDS };

struct renamed_number;

struct numbering {
    int64_t first;                  /* taken by this writer: from then on */
    int64_t next;                   /* the next number to take */
    int64_t settled;                /* numbers below it have a row that is committed */
    struct renamed_number *renamed; /* numbers that are not their own ids */
};

/* `largest` is the largest id in the store. */
void numbering_init(struct numbering *numbering, int64_t largest);
void numbering_release(struct numbering *numbering);

int64_t numbering_take(struct numbering *numbering);
/* The number of a row that is in the store. -ENOMEM. */
int numbering_of_row(struct numbering *numbering, int64_t id, int64_t *ret_number);

/* The number's row has that id. It may be said again, with another id. -ENOMEM. */
int numbering_set(struct numbering *numbering, int64_t number, int64_t id);

/* The id of a number; the number itself as long as nothing else was said. */
int64_t numbering_id(const struct numbering *numbering, int64_t number);

/* Puts ids in place of numbers of functions and sites in the sections of a segment, which must be one that a
 * builder made; `scratch` gets the sections that change. Nothing is done where all numbers are ids. -ENOMEM.
 */
int numbering_translate(const struct numbering numberings[NUMBER_KINDS], struct segment_parts *parts,
                        struct bytes scratch[SECTION_COUNT]);

#endif
