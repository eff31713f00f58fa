/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is kept of images while no process has them mapped. */
#include <malloc.h>

#include "collector/go/program.h"
#include "collector/recording/recorder_state.h"

/* A look at all processes' code takes longer the more there are of them. */
#define LOOK_NS 500000000u
/* Programs that have come meanwhile, each with its file in memory. */
#define LOOK_IMAGES 4

void recorder_release_images(struct recorder *recorder, uint64_t now)
{
    uint32_t count = image_table_count(recorder->images);

    if (count < recorder->images_checked + LOOK_IMAGES && now - recorder->images_checked_ns < LOOK_NS)
        return;
    recorder->images_checked_ns = now;
    if (count != recorder->images_checked)
        malloc_trim(0); /* what their analysis took lies between what is kept of it */
    recorder->images_checked = count;
    streams_mark_images(recorder->streams);
    for (struct traced_image *image = image_table_images(recorder->images); image; image = image->next) {
        if (!image->in_use && !image->go)
            elf_image_forget(image->elf);
        image->in_use = false;
    }
}
