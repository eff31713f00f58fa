/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which functions of an image can have inline probes, what is replaced in each, and why the others cannot. */
#ifndef TRACECTL_COLLECTOR_DISPLACE_DISPLACE_IMAGE_H
#define TRACECTL_COLLECTOR_DISPLACE_DISPLACE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "collector/displace/displace.h"
#include "collector/plan/site.h"
#include "image/functions/functions.h"

struct error;
struct flow_map;

struct displace_site {
    enum displace_refusal refusal;
    enum site_refusal symbol; /* DISPLACE_NO_FUNCTION: why it is none; otherwise SITE_OK */
    uint64_t address;         /* link-time, of the patched bytes: behind ENDBR64 if there is one */
    const uint8_t *code;      /* the function's first bytes in the file; borrowed, until elf_image_forget */
    struct displacement displacement;
};

/* One answer for each of `functions` (image_functions() of `image`), in their order; the caller frees them.
 * `map`: that of the image and these functions (flow_image.h), in which FLOW_STRAY is set. -ENOMEM, -ENOTSUP: no disassembler. */
int displace_image(struct elf_image *image, const struct image_function *functions, size_t count,
                   struct flow_map *map, struct displace_site **ret_sites, struct error *err);

#endif
