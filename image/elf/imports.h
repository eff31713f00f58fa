/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an image takes from others. */
#ifndef TRACECTL_IMAGE_ELF_IMPORTS_H
#define TRACECTL_IMAGE_ELF_IMPORTS_H

#include <stdbool.h>

#include "image/elf/elf_image.h"

/* The first name of the NULL-terminated list `names` that is an undefined symbol of the dynamic symbol table;
 * NULL: none is. */
const char *image_imports(struct elf_image *image, const char *const *names);

#endif
