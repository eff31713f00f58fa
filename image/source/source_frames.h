/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The functions of the source that an instruction belongs to: the one that was called, and those that the
 * compiler put into it. */
#ifndef TRACECTL_IMAGE_SOURCE_SOURCE_FRAMES_H
#define TRACECTL_IMAGE_SOURCE_SOURCE_FRAMES_H

#include "image/elf/elf_image.h"

struct source_frame {
    const char *function; /* as the compiler calls it (mangled); NULL: not known. Of the first one, the name
                             that image_functions() has is as good */
    const char *file;     /* where this function stands; NULL: not known */
    unsigned line;
};

/* The frames of the instruction at `address`, the function that was called first and then those that were
 * inlined, each into the one before: `capacity` of them at the most. From the DWARF of the image or of its
 * separate debug file, or from Go's .gopclntab; what is returned lives as long as the image. 0: nothing is
 * known. Reads what image_function_source() reads, under the same conditions. */
size_t image_source_frames(struct elf_image *image, uint64_t address, struct source_frame *frames,
                           size_t capacity);

#endif
