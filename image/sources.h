/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to image/: the places that functions.c collects functions, and what is known about them, from. */
#ifndef TRACECTL_IMAGE_SOURCES_H
#define TRACECTL_IMAGE_SOURCES_H

#include "image/functions.h"

struct address_range {
    uint64_t start;
    uint64_t end; /* exclusive */
};

/* ---------------------------------------------------------------------------------------------- the image */

struct debug_files;
struct gopclntab;
struct relocations;
struct source_lines;

/* What is read when it is first wanted, and lives as long as the image. */
struct image_cache {
    struct debug_files *debug_files;
    struct gopclntab *gopclntab;
    struct relocations *relocations;
    struct source_lines *lines;
    bool no_gopclntab; /* it was looked for in vain */
};

struct image_cache *elf_image_cache(struct elf_image *image);
void debug_files_free(struct debug_files *files);
void gopclntab_free(struct gopclntab *table);
void relocations_free(struct relocations *relocations);
void source_lines_free(struct source_lines *lines);

int elf_image_fd(const struct elf_image *image);
const char *elf_image_debug_root(const struct elf_image *image);

/* The extent of PT_LOAD `index` that is in the file; false: there are no so many. */
bool elf_image_segment(const struct elf_image *image, size_t index, struct address_range *ret_range,
                       bool *ret_executable);

/* ---------------------------------------------------------------------------------------------- code */

struct code_section {
    uint64_t start;
    uint64_t end;
    bool plt; /* holds stubs, not functions */
};

/* Where code can be: the executable sections, or executable segments where the section headers are gone.
 * Sorted. */
struct code_map {
    struct code_section *items;
    size_t count, capacity;
};

/* 0 or -ENOMEM. */
int code_map_read(struct elf_image *image, struct code_map *map);
void code_map_release(struct code_map *map);

/* The section that holds `address`, or NULL. O(log count). */
const struct code_section *code_map_find(const struct code_map *map, uint64_t address);

/* .plt, .plt.sec, .plt.got, .plt.bnd, .iplt */
bool is_plt_section(const char *name);

/* ---------------------------------------------------------------------------------------------- functions */

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
