/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Private to image/: the bytes of an image's code that differ between the file and memory, as far as the file
 * tells. A probe on such a byte would carry out, and put back, an instruction that the program does not have.
 *
 * - Dynamic relocations in code (DT_TEXTREL): the linker fills in addresses.
 * - Segments that are executable and writable: a packed program, or one that writes its own code. The kernel
 *   places no breakpoint there either.
 * - Sleds of XRay, entries made by -fpatchable-function-entry and calls recorded by -mrecord-mcount: no-ops
 *   that the program, or a tool inside it, replaces while it runs.
 *
 * Programs that write code without any of this are not recognised here.
 */
#ifndef TRACECTL_IMAGE_FLOW_FLOW_CHANGES_H
#define TRACECTL_IMAGE_FLOW_FLOW_CHANGES_H

#include <stdbool.h>

#include "image/elf/elf_image.h"
#include "image/flow/flow_map.h"

/* Sets FLOW_CHANGES on those bytes of the map, which has been walked. `*ret_relocated`: some are filled in by
 * relocations, so that not all branches of the code are known. */
void flow_changes_mark(struct elf_image *image, struct flow_map *map, bool *ret_relocated);

#endif
