/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to image/: the table by which Go's runtime finds names and lines; strip leaves it in place. */
#ifndef TRACECTL_IMAGE_FUNCTIONS_GOPCLNTAB_H
#define TRACECTL_IMAGE_FUNCTIONS_GOPCLNTAB_H

#include "image/functions/sources.h"

/* Appends the functions of the image's table. Images without one, or with one that makes no sense, have none:
 * 0, or -ENOMEM. */
int gopclntab_collect(struct elf_image *image, const struct code_map *map, struct function_list *list);

/* File and line of the function that begins at `address`; what is returned lives as long as the image. False:
 * the table has no such function, or is not there. */
bool gopclntab_source(struct elf_image *image, uint64_t address, const char **ret_file, unsigned *ret_line);

/* A function that an instruction belongs to: the one that was called, or one that was inlined into it. */
struct go_frame {
    const char *function; /* as in the table; of generic functions with "[...]" */
    const char *file;     /* of the instruction, or of the call of the next inner frame */
    unsigned line;
};

/* The frames of the instruction at `address`, the innermost first: those that were inlined there and the
 * function itself, `capacity` of them at the most. What is returned lives as long as the image. 0: the table
 * does not know the address. Where inline trees are not found (before go 1.17), the function itself alone. */
size_t gopclntab_frames(struct elf_image *image, uint64_t address, struct go_frame *frames, size_t capacity);

struct go_symbol {
    const char *name; /* lives as long as the image; several functions may have the same */
    uint64_t address;
    uint64_t size; /* without what fills up to the next one */
};

/* All functions of the table, by address; to be freed. -ENOENT: the image has no table that makes sense. */
int gopclntab_symbols(struct elf_image *image, struct go_symbol **ret_symbols, size_t *ret_count);

#endif
