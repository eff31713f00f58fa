/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to image/: pointers in an image's data, where a relocation fills them in, too. */
#ifndef TRACECTL_IMAGE_ELF_POINTERS_H
#define TRACECTL_IMAGE_ELF_POINTERS_H

#include "image/elf/elf_parts.h"

/* The pointer at `place` as the image is loaded at its link-time addresses: the addend of the relative
 * relocation there, or what the file has. False: the file has nothing for `place`. O(log relocations); the
 * first question sorts them. */
bool image_pointer_at(struct elf_image *image, uint64_t place, uint64_t *ret_value);

/* Whether a relative relocation fills in `place`, and with what. */
bool image_relocation_at(struct elf_image *image, uint64_t place, uint64_t *ret_value);

/* The first place above `after` of an aligned pointer to `target` in data that is not executable; 0: there is
 * none. */
uint64_t image_pointer_to(struct elf_image *image, uint64_t target, uint64_t after);

#endif
