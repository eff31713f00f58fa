/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether anything but the instruction before may lead to given bytes of an image's code: the question of
 * those who want to overwrite them.
 *
 * The map of the code (flow_map.h, flow_image.h) has the targets of all direct branches of all functions and
 * of what lies between them, jump tables, relocations, words of data, exports and addresses in code. It is
 * made by walking through instructions, and a walk that got lost in data between code (tables of hand-written
 * routines) may step over a branch. So here every byte of the code is taken for the beginning of a long
 * branch, and what that would lead to is marked as well. A long branch has 32 bits of distance: that one of
 * the four bytes behind the entry of one of a few thousand functions is hit by chance happens once in ten or
 * a hundred images, and costs a probe of the dearer kind. Short branches are left out of this: they reach 128
 * bytes, and would hit every third function by chance; but a walk begins anew at every function, so those
 * that may lead to its first bytes have just been walked through.
 *
 * Landing pads of exceptions are not read from .gcc_except_table. They stand behind calls, and behind
 * instructions that do not continue to them: displace.h refuses to overwrite either.
 */
#ifndef TRACECTL_IMAGE_FLOW_BRANCH_TARGETS_H
#define TRACECTL_IMAGE_FLOW_BRANCH_TARGETS_H

#include "image/flow/flow_map.h"

/* Sets FLOW_STRAY all over a map that has been walked through. O(bytes of code), about a nanosecond each; a map that has
 * such marks stays as it is. */
void branch_targets_mark(struct flow_map *map);

/* Whether one of the bytes from `first` to `last`, both included, may be led to. Needs the marks of
 * flow_image_map() and branch_targets_mark(). */
bool branch_targets_within(const struct flow_map *map, uint64_t first, uint64_t last);

#endif
