/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* In place of the image table, in the one file of a test that has this: one whose probe N is function "fN", at
 * 0x1000 + 16 * N of /bin/test. */
#ifndef TESTS_FAKE_IMAGES_H
#define TESTS_FAKE_IMAGES_H

#include <stdio.h>

#include "collector/images/image_table.h"
#include "store/api/tracestore.h"

int image_table_function_id(struct image_table *table, struct trace_writer *writer, uint32_t index,
                            uint32_t *ret_function_id, struct error *err)
{
    const struct trace_image_description image = {.path = "/bin/test", .build_id = "", .kind = "main"};
    struct trace_function_description function = {.address = 0x1000 + 16 * index, .size = 16};
    char name[16];
    int64_t image_id;
    int r;

    (void)table;
    snprintf(name, sizeof(name), "f%u", index);
    function.name = name;
    r = trace_writer_image(writer, &image, &image_id, err);
    return r ? r : trace_writer_function(writer, image_id, &function, ret_function_id, err);
}

bool image_table_place(const struct image_table *table, uint32_t function, struct function_place *ret_place)
{
    (void)table;
    *ret_place = (struct function_place){NULL, 0x1000 + 16 * function, 16};
    return true;
}

uint32_t image_table_probed_function(const struct image_table *table, uint32_t index)
{
    (void)table;
    return index;
}

uint32_t image_table_find(const struct image_table *table, const struct traced_image *image, uint64_t address)
{
    (void)table;
    (void)image;
    return address >= 0x1000 && address < 0x101000 ? (uint32_t)(address - 0x1000) / 16 : NO_FUNCTION;
}

int image_table_image_id(struct trace_writer *writer, struct traced_image *image, int64_t *ret_image_id,
                         struct error *err)
{
    (void)writer;
    (void)image;
    (void)err;
    *ret_image_id = 1;
    return 0;
}

int image_table_site_id(struct image_table *table, struct trace_writer *writer, struct traced_image *image,
                        uint64_t address, uint32_t *ret_site_id, struct error *err)
{
    const struct trace_image_description description = {.path = "/bin/test", .build_id = "", .kind = "main"};
    struct trace_call_site_description site = {.address = address};
    int r = trace_writer_image(writer, &description, &site.image_id, err);

    (void)table;
    (void)image;
    return r ? r : trace_writer_call_site(writer, &site, ret_site_id, err);
}

#endif
