/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sections of a finished segment that are no code are varints, most of which resemble those of the same
 * place in the group before: they are packed by an arithmetic code (range_coder.h), each byte by what has
 * come at its place.
 */
#ifndef TRACESTORE_SECTION_PACKING_H
#define TRACESTORE_SECTION_PACKING_H

#include "store/segment/segment.h"

#define PACKED_MAX ((size_t)4 << 20) /* bytes in all: sections that are longer are not packed */

/* Whether the section is one of those that are packed. */
static inline bool section_is_packed(int section)
{
    return section != SECTION_CODE && section != SECTION_SITE_CODE;
}

/* Appends the sections, packed, to `packed`. -E2BIG: they are too long; -ENOMEM. */
int sections_pack(const struct segment_parts *parts, struct bytes *packed);

/* Fills in the packed sections of `parts`, whose sizes are set, from the start of `room`. -EBADMSG, -ENOMEM.
 */
int sections_unpack(const uint8_t *packed, size_t size, struct bytes *room, struct segment_parts *parts);

#endif
