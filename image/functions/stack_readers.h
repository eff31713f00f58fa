/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Images whose code looks at the return addresses on its stack, as far as symbols tell. */
#ifndef TRACECTL_IMAGE_FUNCTIONS_STACK_READERS_H
#define TRACECTL_IMAGE_FUNCTIONS_STACK_READERS_H

#include "image/elf/elf_image.h"

enum stack_reach {
    STACK_NONE,    /* no symbol tells of anything */
    STACK_OWN,     /* its own frames: functions that switch stacks, or print where they were called from */
    STACK_PROCESS, /* those of whatever runs in the process */
};

struct stack_reader {
    enum stack_reach reach;
    const char *what; /* in a few words; NULL with STACK_NONE */
};

/*
 * What is in the image that reads return addresses off the stack or moves stacks, in a few words ("OCaml: its
 * garbage collector finds frames by return addresses"), and whose frames it reads. Known by what it
 * defines or imports: run-time systems of languages, profilers, sanitizers, and functions of libraries that
 * walk or switch stacks (only those have STACK_OWN). Without symbols Haskell is known by what its run-time
 * system would print.
 *
 * What walks frame pointers by itself has no symbol for it: see return_code_walks_frames() of
 * collector/plan/return_rules.h.
 */
struct stack_reader image_stack_reader(struct elf_image *image);

#endif
