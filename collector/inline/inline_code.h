/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stubs and patches of an image as they are at one place in memory.
 *
 * Processes that were forked from one another have their program at the same addresses, and mostly the same
 * room beside it: what was made for one of them does for all. It is copied from the collector's own memory:
 * what the first process has been given is that one's to destroy.
 */
#ifndef TRACECTL_COLLECTOR_INLINE_INLINE_CODE_H
#define TRACECTL_COLLECTOR_INLINE_INLINE_CODE_H

#include "collector/inline/inline_image.h"

struct inline_code {
    struct inline_order order; /* what it was made for */
    const struct inline_image *inlined;
    struct inline_patch *patches; /* `inlined->place_count` of them */
    struct inline_extent extent;  /* what the stubs take of `order.stubs`, which are this one's own */
    size_t users;
};

/* Makes it for one user; of `order` the stubs are not looked at. -ENOMEM; -ERANGE as inline_image_emit(). */
int inline_code_new(const struct inline_image *inlined, const struct inline_order *order,
                    struct inline_code **ret_code);

/* Whether it is what inline_code_new() would make. */
bool inline_code_is(const struct inline_code *code, const struct inline_image *inlined,
                    const struct inline_order *order);

/* Copies the stubs to an area of such processes. */
void inline_code_copy(const struct inline_code *code, uint8_t *stubs);

/* Another user; one less, with the last of which it goes. NULL is accepted. */
struct inline_code *inline_code_share(struct inline_code *code);
void inline_code_release(struct inline_code *code);

#endif
