/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which Go made an image: .go.buildinfo, which strip leaves in place (Go's debug/buildinfo). */
#ifndef TRACECTL_IMAGE_GO_GO_VERSION_H
#define TRACECTL_IMAGE_GO_GO_VERSION_H

#include <stdbool.h>

#include "image/elf/elf_image.h"

struct go_version {
    char text[64];         /* "go1.22.12", "devel go1.26-0a5b..."; cut off where it is longer */
    unsigned major, minor; /* 1 and 22 */
    bool experiment;       /* made with GOEXPERIMENT, which may change the runtime's structures */
};

/* -ENOENT: not Go's, or too old to say (before go 1.13). */
int go_version_read(struct elf_image *image, struct go_version *ret_version, struct error *err);

#endif
