/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Images whose code looks at the return addresses on its stack, as far as symbols tell. */
#ifndef TRACECTL_IMAGE_STACK_READERS_H
#define TRACECTL_IMAGE_STACK_READERS_H

#include "image/elf_image.h"

/*
 * What is in the image that reads return addresses off the stack or moves stacks, in a few words ("OCaml: its
 * garbage collector finds frames by return addresses"); NULL: no symbol tells of anything. Known by what it
 * defines or imports: run-time systems of languages, profilers, sanitizers, and functions of libraries that
 * walk or switch stacks. Without symbols Haskell is known by what its run-time system would print.
 *
 * What walks frame pointers by itself has no symbol for it: see return_code_walks_frames() of
 * collector/plan/return_rules.h.
 */
const char *image_stack_reader(struct elf_image *image);

#endif
