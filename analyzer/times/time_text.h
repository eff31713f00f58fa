/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Times as people read them, with four digits or so. */
#ifndef TRACECTL_ANALYZER_TIMES_TIME_TEXT_H
#define TRACECTL_ANALYZER_TIMES_TIME_TEXT_H

#include "analyzer/times/time_range.h"

#define TIME_TEXT_SIZE 64 /* is always enough */

/* "940 ns", "12.34 us", "1.500 ms", "3.210 s". */
void time_text(uint64_t ns, char text[TIME_TEXT_SIZE]);

/* The same of an exact time; of a range "0 to 1.500 ms", "12.34 us to 1.500 ms", "over 3.210 s", and "?" where
 * neither bound is known. */
void time_range_text(struct time_range range, char text[TIME_TEXT_SIZE]);

#endif
