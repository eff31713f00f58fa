/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to image/: the table by which Go's runtime finds names and lines; strip leaves it in place. */
#ifndef TRACECTL_IMAGE_GOPCLNTAB_H
#define TRACECTL_IMAGE_GOPCLNTAB_H

#include "image/sources.h"

/* Appends the functions of the image's table. Images without one, or with one that makes no sense, have none:
 * 0, or -ENOMEM. */
int gopclntab_collect(struct elf_image *image, const struct code_map *map, struct function_list *list);

/* File and line of the function that begins at `address`; what is returned lives as long as the image. False:
 * the table has no such function, or is not there. */
bool gopclntab_source(struct elf_image *image, uint64_t address, const char **ret_file, unsigned *ret_line);

#endif
