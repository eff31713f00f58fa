/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to image/: what its files ask an image for, beside what elf_image.h tells everybody. */
#ifndef TRACECTL_IMAGE_ELF_ELF_PARTS_H
#define TRACECTL_IMAGE_ELF_ELF_PARTS_H

#include "image/elf/elf_image.h"

struct address_range {
    uint64_t start;
    uint64_t end; /* exclusive */
};

/* What is read of an image when it is first wanted, and freed with it or by elf_image_forget(), in this
 * order. */
enum image_part {
    IMAGE_PART_SOURCE_LINES, /* read from the debug files */
    IMAGE_PART_GOPCLNTAB,
    IMAGE_PART_RELOCATIONS,
    IMAGE_PART_DEBUG_FILES,
    IMAGE_PART_COUNT
};

/* What was kept as `part`; NULL: nothing yet. */
void *elf_image_part(const struct elf_image *image, enum image_part part);

/* Keeps `data`, which is freed with `release` (NULL: not at all) when the image is freed or forgotten. There
 * was none before. */
void elf_image_keep_part(struct elf_image *image, enum image_part part, void *data, void (*release)(void *));

const char *elf_image_debug_root(const struct elf_image *image);

/* Notes what was not read; only the first line is kept (elf_image_given_up). */
void elf_image_give_up(struct elf_image *image, const char *text);

/* The same of the debug information of the file at `path`. */
struct elf_file;
void elf_image_give_up_debug(struct elf_image *image, const char *path, const struct elf_file *file);

/* Whether the image itself has debug information of a size that may be read; notes it when that is too
 * large. */
bool elf_image_may_read_debug_info(struct elf_image *image);

/* Fills the facts but for those of the file header, which are set. The segments are known already. */
int elf_facts_read(const struct elf_image *image, Elf *elf, size_t segment_count,
                   struct elf_image_facts *facts, struct error *err);

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

#endif
