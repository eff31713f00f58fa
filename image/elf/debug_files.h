/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Private to image/: what was split off an image. A separate debug file (Debian's -dbgsym packages, `objcopy
 * --only-keep-debug`) has the .symtab and the DWARF; .gnu_debugdata (Fedora's MiniDebugInfo) is an
 * xz-compressed ELF file in the image with a .symtab of the functions that .dynsym has not.
 */
#ifndef TRACECTL_IMAGE_ELF_DEBUG_FILES_H
#define TRACECTL_IMAGE_ELF_DEBUG_FILES_H

#include <elfutils/libdw.h>

#include "image/elf/elf_parts.h"

/* The separate debug file that belongs to the image: below the debug root
 * /usr/lib/debug/.build-id/XX/REST.debug, or what .gnu_debuglink names, beside the image, in .debug/ there,
 * or in /usr/lib/debug/DIRECTORY. It belongs to the image when their build ids are equal or, where one has
 * none, the checksum of .gnu_debuglink is right. Borrowed, until elf_image_forget; NULL: there is none, or it
 * is too large (elf_image_given_up). Looked for once. */
Elf *debug_files_separate(struct elf_image *image);

/* The debug information of the image or of its separate debug file, with what dwz has moved to a third file
 * (.gnu_debugaltlink). Borrowed, until elf_image_forget; NULL: there is none, or not all of it can be read.
 */
Dwarf *debug_files_dwarf(struct elf_image *image);

/* The ELF file in .gnu_debugdata. Borrowed; NULL: there is none. */
Elf *debug_files_mini(struct elf_image *image);

#endif
