/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where debug information says that the integer variables of a function are. */
#ifndef TRACECTL_IMAGE_SOURCE_FRAME_VARIABLES_H
#define TRACECTL_IMAGE_SOURCE_FRAME_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/elf/elf_image.h"

enum frame_variable_base {
    FRAME_VARIABLE_REGISTER, /* in DWARF register `number` */
    FRAME_VARIABLE_CFA,      /* in memory, at the canonical frame address + `offset` */
    FRAME_VARIABLE_NEAR,     /* in memory, at what DWARF register `number` holds + `offset` */
};

struct frame_variable {
    const char *name; /* lives as long as the image */
    enum frame_variable_base base;
    unsigned number;
    int64_t offset;
    uint8_t size; /* bytes: 4 or 8 */
    bool is_signed;
};

/* The integer variables and parameters of the function that `address` is in, as far as each has one place at
 * that address: those of all its blocks and of functions inlined into it. The caller frees *ret_variables. No
 * debug information gives none. Not for several threads at once. -ENOMEM. */
int image_frame_variables(struct elf_image *image, uint64_t address, struct frame_variable **ret_variables,
                          size_t *ret_count);

#endif
