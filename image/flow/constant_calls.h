/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls of functions of others with an argument that stands in the code as a number. */
#ifndef TRACECTL_IMAGE_FLOW_CONSTANT_CALLS_H
#define TRACECTL_IMAGE_FLOW_CONSTANT_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/functions/functions.h"

struct constant_call {
    const char *stub;  /* "NAME@plt" */
    unsigned argument; /* 0 or 1 */
    uint32_t value;
};

/* Whether a function of the image calls the stub and has loaded that number for its argument a few
 * instructions before: in straight code as compilers make it. A number that comes from elsewhere is not seen.
 */
bool image_calls_with(struct elf_image *image, const struct image_function *functions, size_t count,
                      const struct constant_call *call);

#endif
