/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads in order of progress as a picture: a box for the calls that threads share, below it and further to
 * the right a box for each branch, the least progressed first. */
#ifndef TRACECTL_ANALYZER_PICTURE_ORDER_PICTURE_H
#define TRACECTL_ANALYZER_PICTURE_ORDER_PICTURE_H

#include "analyzer/order/order_tree.h"
#include "analyzer/picture/svg.h"

struct order_picture {
    const struct order_tree *order;
    bool everything; /* also branches that the order was not asked of, and all calls */
    size_t most;     /* boxes; of more, the first ones are drawn */
    enum svg_form form;
};

/* The picture; *ret_undrawn branches were left out. In memory from malloc; NULL: there was not enough. */
char *order_picture_svg(const struct order_picture *picture, size_t *ret_undrawn);

#endif
