/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Addresses of processes as places of a sample (analyzer/order/sample.h): image, function, source line, and
 * what was inlined there. Asked once for each address of an image; threads share the answers.
 */
#ifndef TRACECTL_COLLECTOR_STACKS_PLACE_NAMES_H
#define TRACECTL_COLLECTOR_STACKS_PLACE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "analyzer/order/sample.h"
#include "collector/stacks/code_images.h"
#include "collector/stacks/live_maps.h"

/* Of one frame at the most: the function and what is inlined into it. */
enum { PLACES_MAX = 32 };

struct place_names;

/* Both must live as long as what is returned. -ENOMEM. */
int place_names_new(struct code_images *images, struct sample_set *set, struct place_names **ret_names);

/* Accepts NULL. */
void place_names_free(struct place_names *names);

/* The image that an address of a process lies in. */
struct process_code {
    pid_t pid;
    const struct live_maps *maps;
};
struct code_place {
    struct code_image *image; /* NULL: code of no file that can be read */
    uint64_t address;         /* link-time; of the process where there is no image */
    uint64_t bias;            /* what was taken away */
};

/* -ENOMEM. */
int place_names_find(struct place_names *names, const struct process_code *code, uint64_t address,
                     struct code_place *ret_place);

/* The numbers of the places that an instruction stands for, the function that was called first; `flags` are
 * added to the first one's. At least one. `ret_numbers` has room for PLACES_MAX. -ENOMEM. */
int place_names_places(struct place_names *names, const struct code_place *place, unsigned flags,
                       uint32_t *ret_numbers, size_t *ret_count);

#endif
