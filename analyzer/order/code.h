/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The code that a sample's places are in: images are opened and functions taken apart when the order first
 * depends on them, once each, however many threads stand in them.
 */
#ifndef TRACECTL_ANALYZER_ORDER_CODE_H
#define TRACECTL_ANALYZER_ORDER_CODE_H

#include "analyzer/order/sample.h"
#include "image/flow/flow_graph.h"
#include "image/source/frame_variables.h"

struct error;

/* One function. */
struct order_function {
    uint32_t image;
    uint64_t entry;
    const struct image_function *function; /* NULL: the image does not have it, or cannot be opened */
    struct flow_graph *graph;              /* NULL: it could not be read */
    struct loop_order *loops;              /* what loop_order.h found out so far; NULL: nothing */
};

struct order_code;

/* `set` is borrowed. -ENOTSUP: no disassembler; -ENOMEM. */
int order_code_new(const struct sample_set *set, struct order_code **ret_code, struct error *err);
void order_code_free(struct order_code *code);

DEFINE_CLEANUP(cleanup_order_code, struct order_code *, order_code_free)
#define AUTO_ORDER_CODE CLEANUP(cleanup_order_code)

/* The function that a place is in: the one that begins at its `entry`, or where that is not known the one
 * that covers its address. NULL: no memory, or no image. What could not be read is a function without graph.
 * Borrowed. */
struct order_function *order_code_function(struct order_code *code, const struct sample_place *place);

/* The opened image of a function, or NULL. Borrowed. */
struct elf_image *order_code_image(struct order_code *code, uint32_t image);

/* All functions of an image, NULL when it has none. Borrowed. */
const struct image_function *order_code_functions(struct order_code *code, uint32_t image, size_t *ret_count);

#endif
