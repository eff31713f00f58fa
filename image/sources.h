/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to image/: the places that functions.c collects functions, and what is known about them, from. */
#ifndef TRACECTL_IMAGE_SOURCES_H
#define TRACECTL_IMAGE_SOURCES_H

#include "image/functions.h"

struct function_list {
    struct image_function *items;
    size_t count;
    size_t capacity;
};

/* Appends a function with a copy of `name`. 0, or -ENOMEM and the list is as before. */
int function_list_add(struct function_list *list, const char *name, uint64_t address, uint64_t size,
                      unsigned flags);

/* Releases what one function holds, not the struct itself. */
void image_function_clear(struct image_function *function);

/* The functions of .symtab and .dynsym: one for each address, sorted, sizes resolved. */
int symbols_collect(struct elf_image *image, struct function_list *list, struct error *err);

/* The stubs of .plt, .plt.sec and .plt.got whose target has a name. */
int plt_collect(struct elf_image *image, struct function_list *list, struct error *err);

/* Fills in file and line of `functions` (sorted by address) from the image's own DWARF. Broken debugging
 * information leaves them empty: only -ENOMEM is an error. */
int lines_fill(struct elf_image *image, struct image_function *functions, size_t count);

#endif
