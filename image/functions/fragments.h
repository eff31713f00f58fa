/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to image/: parts that the compiler moved out of functions (NAME.cold), and whose parts they are. */
#ifndef TRACECTL_IMAGE_FUNCTIONS_FRAGMENTS_H
#define TRACECTL_IMAGE_FUNCTIONS_FRAGMENTS_H

#include "image/functions/eh_frame.h"

/* Sets IMAGE_FUNCTION_FRAGMENT on functions without a name that are parts of others, takes it from named ones
 * that are called all the same, and sets `part_of` of all fragments where it can be told. `functions` are
 * sorted. 0 or -ENOMEM. */
int fragments_find(struct elf_image *image, const struct code_map *map, const struct fde_list *fdes,
                   struct image_function *functions, size_t count);

#endif
