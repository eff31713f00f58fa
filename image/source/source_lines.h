/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to image/: where in the DWARF of an image, or of its separate debug file, an address is described.
 */
#ifndef TRACECTL_IMAGE_SOURCE_SOURCE_LINES_H
#define TRACECTL_IMAGE_SOURCE_SOURCE_LINES_H

#include <elfutils/libdw.h>

#include "image/functions/sources.h"

/* The unit and the subprogram that have code at `address`. They live as long as the image. False: no
 * subprogram is known there; `ret_unit` may have been filled in. Under the conditions of
 * image_function_source. */
bool source_lines_at(struct elf_image *image, uint64_t address, Dwarf_Die *ret_unit, Dwarf_Die *ret_function);

#endif
