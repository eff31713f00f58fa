/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to image/: the three sources of the offsets of fields. What a source does not know is left as it is
 * (GO_NO_OFFSET). */
#ifndef TRACECTL_IMAGE_GO_GO_OFFSETS_H
#define TRACECTL_IMAGE_GO_GO_OFFSETS_H

#include "image/functions/gopclntab.h"
#include "image/go/go_layout.h"

/* From the runtime's code. 0 or -ENOMEM. */
int go_offsets_from_code(struct elf_image *image, const struct go_symbol *symbols, size_t count,
                         int32_t offsets[GO_OFFSETS]);

/* From the DWARF of the image or of its separate debug file. False: there is none of the runtime. */
bool go_offsets_from_dwarf(struct elf_image *image, int32_t offsets[GO_OFFSETS]);

/* From what was looked up in some versions. False: not in this one. */
bool go_offsets_from_table(const struct go_version *version, int32_t offsets[GO_OFFSETS]);

/* The real function of that name among `count` symbols, by go_place; name NULL: there is none. */
struct go_entry_place go_place_of(struct elf_image *image, const struct go_symbol *symbols, size_t count,
                                  const char *name);

#endif
