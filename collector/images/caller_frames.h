/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where the frame of a call's caller begins, from the caller's code: for callers that are not probed
 * themselves. */
#ifndef TRACECTL_COLLECTOR_IMAGES_CALLER_FRAMES_H
#define TRACECTL_COLLECTOR_IMAGES_CALLER_FRAMES_H

#include <stdint.h>

#include "image/elf/elf_image.h"
#include "image/functions/functions.h"

/* What is known of an image's calls; all zero is nothing yet. */
struct caller_frames {
    struct known_caller_function *functions;
    struct known_call *calls;
};

void caller_frames_release(struct caller_frames *frames);

/* The depth (call_depth.h) of the call that returns to `return_address`, an address of the image with these
 * functions; 0: not known, or no memory. A function's code is read at its first call,
 * which takes about a microsecond for ten instructions. */
uint64_t caller_frames_depth(struct caller_frames *frames, struct elf_image *image,
                             const struct image_function *functions, size_t count, uint64_t return_address);

#endif
