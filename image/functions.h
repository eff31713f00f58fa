/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The one answer to "which functions does this image have?", from whatever the image carries. */
#ifndef TRACECTL_IMAGE_FUNCTIONS_H
#define TRACECTL_IMAGE_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "image/elf_image.h"

enum image_function_flags {
    IMAGE_FUNCTION_PLT = 1 << 0,          /* a stub that calls into another image, named NAME@plt */
    IMAGE_FUNCTION_IFUNC = 1 << 1,        /* the address is that of the resolver, which runs at load time */
    IMAGE_FUNCTION_ENTRY_POINT = 1 << 2,  /* e_entry: entered with argc, not a return address, at [rsp] */
    IMAGE_FUNCTION_FRAGMENT = 1 << 3,     /* NAME.cold: entered by a jump out of the middle of NAME */
    IMAGE_FUNCTION_SIZE_GUESSED = 1 << 4, /* the symbol had no size: up to the next symbol or section end */
    IMAGE_FUNCTION_INSIDE = 1 << 5,       /* begins inside another function's extent */
};

struct image_function {
    char *name;       /* as in the symbol table, without symbol version; NAME@plt for stubs */
    char *demangled;  /* NULL when `name` is not a mangled name */
    char **aliases;   /* other names of the same address, NULL-terminated; NULL when there are none */
    char *file;       /* source file, NULL when unknown */
    uint64_t address; /* link-time */
    uint64_t size;    /* bytes, never 0, never beyond the section */
    uint64_t file_offset;
    unsigned line;  /* 0 when unknown */
    unsigned flags; /* enum image_function_flags */
};

/* All functions of `image`, sorted by address, each address once. The caller frees them. An image without
 * symbols gives 0 functions, or PLT stubs only: see image_functions_own(). Tables that make no sense are
 * passed over: the only error is -ENOMEM. */
int image_functions(struct elf_image *image, struct image_function **ret_functions, size_t *ret_count,
                    struct error *err);

void image_functions_free(struct image_function *functions, size_t count);

/* How many are the image's own, that is, not PLT stubs. */
size_t image_functions_own(const struct image_function *functions, size_t count);

/* The function whose extent covers `address`, or NULL. O(log count). */
const struct image_function *image_functions_find(const struct image_function *functions, size_t count,
                                                  uint64_t address);

/* What people call it: the demangled name where there is one. Borrowed. */
static inline const char *image_function_display_name(const struct image_function *function)
{
    return function->demangled ? function->demangled : function->name;
}

#endif
