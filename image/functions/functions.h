/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The one answer to "which functions does this image have?", from whatever the image carries. */
#ifndef TRACECTL_IMAGE_FUNCTIONS_FUNCTIONS_H
#define TRACECTL_IMAGE_FUNCTIONS_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/elf/elf_image.h"

struct error;

enum image_function_flags {
    IMAGE_FUNCTION_PLT = 1 << 0,          /* a stub that calls into another image, named NAME@plt */
    IMAGE_FUNCTION_IFUNC = 1 << 1,        /* the address is that of the resolver, which runs at load time */
    IMAGE_FUNCTION_ENTRY_POINT = 1 << 2,  /* e_entry: entered with argc on the stack, not a return address */
    IMAGE_FUNCTION_FRAGMENT = 1 << 3,     /* NAME.cold: entered by a jump out of the middle of `part_of` */
    IMAGE_FUNCTION_SIZE_GUESSED = 1 << 4, /* the symbol had no size: up to the next symbol or section end */
    IMAGE_FUNCTION_INSIDE = 1 << 5,       /* begins inside another function's extent */
    IMAGE_FUNCTION_NO_NAME = 1 << 6,      /* nothing names it: it is called IMAGE+0xADDRESS */
    IMAGE_FUNCTION_NO_TYPE = 1 << 7,      /* its symbols do not say that it is one: hand-written assembly */
    IMAGE_FUNCTION_NO_STUB = 1 << 9, /* PLT, but called without a stub: the address is that of its GOT slot */
    IMAGE_FUNCTION_PROVED = 1 << 8,  /* SIZE_GUESSED, but called, or a global symbol of type function */
};

/* Where a function is known from, the most telling first. */
enum image_source {
    IMAGE_SOURCE_PLT, /* its code is a stub, whatever a symbol calls it (malloc$plt) */
    IMAGE_SOURCE_SYMTAB,
    IMAGE_SOURCE_DEBUG_FILE, /* .symtab of a separate debug file */
    IMAGE_SOURCE_MINI_DEBUG, /* .symtab in .gnu_debugdata */
    IMAGE_SOURCE_DYNSYM,
    IMAGE_SOURCE_GOPCLNTAB,
    IMAGE_SOURCE_EH_FRAME,
};

struct image_function {
    char *name;       /* as in its source, without symbol version; NAME@plt for stubs */
    char *demangled;  /* for people, also image_function_show_as(); NULL when `name` is not a mangled name */
    char **aliases;   /* other names of the same address, NULL-terminated; NULL when there are none */
    uint64_t address; /* link-time */
    uint64_t size;    /* bytes, never 0, never beyond the section */
    uint64_t file_offset;
    uint64_t part_of; /* of a fragment: address of the function that it is a part of; 0 when unknown */
    unsigned flags;   /* enum image_function_flags */
    enum image_source source;
};

/* All functions of `image`, sorted by address, each address once. The caller frees them. Names come from
 * .symtab, .dynsym, a separate debug file, .gnu_debugdata and Go's .gopclntab; what has no name is found by
 * .eh_frame. An image may have 0 functions, or PLT stubs only: see image_functions_own(). Tables that make no
 * sense are passed over: the only error is -ENOMEM. */
int image_functions(struct elf_image *image, struct image_function **ret_functions, size_t *ret_count,
                    struct error *err);

void image_functions_free(struct image_function *functions, size_t count);

/* How many are the image's own, that is, not PLT stubs. */
size_t image_functions_own(const struct image_function *functions, size_t count);

/* The function whose extent covers `address`, or NULL. O(log count). */
const struct image_function *image_functions_find(const struct image_function *functions, size_t count,
                                                  uint64_t address);

/* The function to which code at `address` belongs: like image_functions_find(), but for an address in a
 * fragment the function that it is a part of, or NULL when that is not known. */
const struct image_function *image_functions_owner(const struct image_function *functions, size_t count,
                                                   uint64_t address);

/* Where `function` of `image` is declared, or begins where that is not known: from the DWARF of the image or
 * of its separate debug file, one compilation unit at a time, or from Go's .gopclntab. `*ret_file` lives as
 * long as the image. False and the outputs untouched: not known. The first question costs a pass over the
 * units' heads; not for several threads at once. */
bool image_function_source(struct elf_image *image, const struct image_function *function,
                           const char **ret_file, unsigned *ret_line);

/* The line of the instruction at `address`, from the same sources and under the same conditions. */
bool image_source_line(struct elf_image *image, uint64_t address, const char **ret_file, unsigned *ret_line);

/* What people call it: the demangled name where there is one. Borrowed. */
static inline const char *image_function_display_name(const struct image_function *function)
{
    return function->demangled ? function->demangled : function->name;
}

#endif
