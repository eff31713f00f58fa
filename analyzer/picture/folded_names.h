/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One name for several threads that share a row, a leaf or a box of a picture. */
#ifndef TRACECTL_ANALYZER_PICTURE_FOLDED_NAMES_H
#define TRACECTL_ANALYZER_PICTURE_FOLDED_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* "0.1", "0.1, 0.7", "0.1 ... 0.40 (40)" for three or more that are neighbours, "0.1, 0.7, ... (12)" for
 * others. `objects` are indices in `names`, ascending, at least one. In memory from malloc; NULL: none left.
 */
char *folded_name(const char *const *names, const uint32_t *objects, size_t count);

/* All of them as ranges, "0.1 ... 0.40, 2.0, 2.4": at most `most` ranges, and how many threads the others
 * have. In memory from malloc; NULL: none left. */
char *folded_ranges(const char *const *names, const uint32_t *objects, size_t count, size_t most);

/* Brings objects into ascending order. */
void folded_sort(uint32_t *objects, size_t count);

#endif
