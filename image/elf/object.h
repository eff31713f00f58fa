/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Data objects of an image, by name. */
#ifndef TRACECTL_IMAGE_ELF_OBJECT_H
#define TRACECTL_IMAGE_ELF_OBJECT_H

#include <stdint.h>

#include "image/elf/elf_image.h"

/* The link-time address of the exported or local object `name` (without symbol version). -ENOENT. */
int image_object_address(struct elf_image *image, const char *name, uint64_t *ret_address);

#endif
