/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stubs and patches of an image as they are at one place in memory.
 *
 * Processes that were forked from one another have their program at the same addresses, and mostly the same
 * room beside it: what was made for one of them does for all. They have the same file of stubs mapped, which
 * is sealed.
 */
#ifndef TRACECTL_COLLECTOR_INLINE_INLINE_CODE_H
#define TRACECTL_COLLECTOR_INLINE_INLINE_CODE_H

#include "collector/inline/inline_image.h"

struct inline_code {
    struct inline_order order; /* what it was made for; without stubs */
    const struct inline_image *inlined;
    struct inline_patch *patches; /* `inlined->place_count` of them */
    int stubs;                    /* the file, which agent_stubs_new() has made */
    size_t users;
};

/* Makes it for one user; of `order` the stubs are not looked at. -ENOMEM, -EMFILE; -ERANGE as
 * inline_image_emit(). */
int inline_code_new(const struct inline_image *inlined, const struct inline_order *order,
                    struct inline_code **ret_code);

/* Whether it is what inline_code_new() would make. */
bool inline_code_is(const struct inline_code *code, const struct inline_image *inlined,
                    const struct inline_order *order);

/* Another user; one less, with the last of which it goes. NULL is accepted. */
struct inline_code *inline_code_share(struct inline_code *code);
void inline_code_release(struct inline_code *code);

#endif
