/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the store's catalog says of a traced image: the image, its functions, what is not seen of it. */
#ifndef TRACECTL_COLLECTOR_IMAGES_IMAGE_CATALOG_H
#define TRACECTL_COLLECTOR_IMAGES_IMAGE_CATALOG_H

#include "collector/images/image_table.h"

/* Puts the image into the catalog, once; then image->image_id is set. */
int image_catalog_image(struct trace_writer *writer, struct traced_image *image, struct error *err);

/* Puts a function of the image, and the image, into the catalog. */
int image_catalog_function(struct trace_writer *writer, struct traced_image *image,
                           const struct image_function *function, uint32_t *ret_function_id,
                           struct error *err);

/* Stores which wanted functions of the image carry no probe, a tag "untraced:PATH" when none does, with the
 * reasons, and with `report_backend` a tag "backend:PATH". */
int image_catalog_blind(struct traced_image *image, bool report_backend, struct trace_writer *writer,
                        struct error *err);

#endif
