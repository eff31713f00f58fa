/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Private to image/: the extents of functions as .eh_frame has them for unwinding, which strip leaves in
 * place. (LSB Core, 10.6 "Exception Frames"; DWARF 5, 6.4.)
 */
#ifndef TRACECTL_IMAGE_FUNCTIONS_EH_FRAME_H
#define TRACECTL_IMAGE_FUNCTIONS_EH_FRAME_H

#include "image/functions/sources.h"

enum fde_entry {
    FDE_CALLED,    /* at its first byte the frame is that of a function that was just called */
    FDE_CONTINUED, /* at its first byte there is more on the stack: something jumps there out of a function */
    FDE_SIGNAL,    /* a signal trampoline: the kernel makes its frame */
};

struct fde {
    uint64_t address;
    uint64_t size; /* never 0 */
    enum fde_entry entry;
};

struct fde_list {
    struct fde *items;
    size_t count, capacity;
};

/* Reads all entries whose code lies in a section of `map` that is no PLT; sorted, each address once, sizes
 * cut at the section's end. What makes no sense is passed over: 0, or -ENOMEM. */
int eh_frame_read(struct elf_image *image, const struct code_map *map, struct fde_list *list);
void fde_list_release(struct fde_list *list);

#endif
