/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to image_table.c and image_plan.c: the table itself. */
#ifndef TRACECTL_COLLECTOR_IMAGES_IMAGE_TABLE_STATE_H
#define TRACECTL_COLLECTOR_IMAGES_IMAGE_TABLE_STATE_H

#include <uthash.h>

#include "collector/images/image_table.h"

struct known_function {
    struct traced_image *image;
    uint32_t function_id; /* 0: not in the catalog yet */
    bool probed;
};

/* A place in an image that calls return to. */
struct known_site {
    uint64_t address;
    uint32_t site_id;
    UT_hash_handle hh;
};

struct image_table {
    struct image_table_options options;
    struct traced_image *images;
    uint32_t image_count;
    struct known_function *functions;
    size_t function_count, function_capacity;
    unsigned go_programs, go_probes;
    uint32_t *probes; /* the function of each */
    size_t probe_count, probe_capacity;
};

/* Reads the functions of a new image, plans its probes and numbers both. A refusal is returned as an error of
 * the image. */
int image_plan_make(struct image_table *table, struct traced_image *image, struct error *err);

/* Finds out what a program means for inline probes in the libraries of its processes. -ENOMEM. */
int image_plan_judge(const struct image_table *table, struct traced_image *image, struct error *err);

#endif
