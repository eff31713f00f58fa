/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to image/: the places that functions.c collects functions, and what is known about them, from. */
#ifndef TRACECTL_IMAGE_FUNCTIONS_SOURCES_H
#define TRACECTL_IMAGE_FUNCTIONS_SOURCES_H

#include "image/elf/elf_parts.h"
#include "image/functions/functions.h"

struct function_list {
    struct image_function *items;
    size_t count;
    size_t capacity;
};

/* Appends a function with a copy of `name`. 0, or -ENOMEM and the list is as before. */
int function_list_add(struct function_list *list, const char *name, uint64_t address, uint64_t size,
                      unsigned flags, enum image_source source);

/* Adds another name of the same address. 0, or -ENOMEM. */
int image_function_add_alias(struct image_function *function, const char *name);

/* Releases what one function holds, not the struct itself. */
void image_function_clear(struct image_function *function);

/* The functions of .symtab and .dynsym, and where the image has no .symtab, of its separate debug file and
 * its .gnu_debugdata: one for each address, sorted. */
int symbols_collect(struct elf_image *image, const struct code_map *map, struct function_list *list,
                    struct error *err);

/* Gives the names of indirect functions to their implementations, as aliases. `list` is sorted. 0 or -ENOMEM.
 */
int implementations_name(struct elf_image *image, struct function_list *list);

/* Marks the functions without a size that the image's code calls (IMAGE_FUNCTION_PROVED), and drops symbols
 * without a type that neither this nor anything else has proved to be functions. `list` is sorted. 0 or
 * -ENOMEM. */
int labels_resolve(struct elf_image *image, const struct code_map *map, struct function_list *list);

/* The stubs of .plt, .plt.sec, .plt.got and others whose target has a name, and imported functions without a
 * stub. `list` is sorted by address, but for what is appended here. */
int plt_collect(struct elf_image *image, const struct code_map *map, struct function_list *list,
                struct error *err);

#endif
