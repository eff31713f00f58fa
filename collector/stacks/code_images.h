/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The files that sampled processes run code of, each opened and read once for all processes. */
#ifndef TRACECTL_COLLECTOR_STACKS_CODE_IMAGES_H
#define TRACECTL_COLLECTOR_STACKS_CODE_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/stacks/live_maps.h"
#include "image/elf/elf_image.h"
#include "image/functions/functions.h"

struct code_image {
    struct elf_image *elf;
    char *path; /* as the process that was met first sees it, without " (deleted)" */
    char *file; /* opens it as long as the images live, whatever becomes of processes: /proc/self/fd/N */
    int fd;
    struct image_function *functions; /* see code_image_function */
    size_t function_count;
    bool functions_read;
    dev_t device;
    ino_t inode;
};

/* All zero is empty. */
struct code_images {
    struct code_image **items;
    size_t count, capacity;
};

void code_images_release(struct code_images *images);

/* The image in a mapping of process `pid`; of the vDSO, a copy of the process's memory. -ENOENT: there is no
 * file, or it is no image that can be read. -ENOMEM. */
int code_images_get(struct code_images *images, pid_t pid, const struct live_mapping *mapping,
                    struct code_image **ret_image);

/* The function that code at `address` (link-time) belongs to, or NULL. Names are read at the first question.
 */
const struct image_function *code_image_function(struct code_image *image, uint64_t address);

#endif
