/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Wrappers of Go's compiler: functions without source that only call another one, with the arguments of a go
 * statement ("main.main.gowrap1", until go 1.20 "main.main.func1"), or with the receiver of a method value
 * ("main.(*T).run-fm"). What a reader looks for is the function that was written.
 */
#ifndef TRACECTL_IMAGE_GO_GO_WRAPPERS_H
#define TRACECTL_IMAGE_GO_GO_WRAPPERS_H

#include <stddef.h>
#include <stdint.h>

#include "image/elf/elf_image.h"
#include "image/functions/gopclntab.h"

/* All functions of an image (gopclntab_symbols), which must live as long. */
struct go_functions {
    struct elf_image *image;
    const struct go_symbol *symbols;
    size_t count;
    uint8_t wrapper_mark; /* of wrappers in the table of functions; 0: not known */
};

struct go_functions go_functions_of(struct elf_image *image, const struct go_symbol *symbols, size_t count);

struct go_written {
    const char *name; /* lives as long as the image; NULL: no function is there */
    uint64_t address; /* of the function; of one that was inlined into its wrapper, of the wrapper */
};

/* The function that the one at `address` is a wrapper of. That one itself, if it is no wrapper, or if what it
 * calls is known only when it runs (a method of an interface). 0 or -ENOMEM. */
int go_written_function(const struct go_functions *functions, uint64_t address,
                        struct go_written *ret_written);

#endif
