/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to analyzer/order/: the points that threads stand at, iterations included, each with a number. */
#ifndef TRACECTL_ANALYZER_ORDER_ORDER_CLASSES_H
#define TRACECTL_ANALYZER_ORDER_ORDER_CLASSES_H

#include "analyzer/order/order_tree.h"

/* `order` has its set, code and tree; its points are filled by order_classes_find(). `source` is borrowed.
 * -ENOMEM. */
int order_classes_new(struct order_tree *order, const struct order_source *source,
                      struct order_classes **ret_classes);
void order_classes_free(struct order_classes *classes);

/* The class of a thread's frame, which is the number of a point of the tree: for struct prefix_classes. */
int order_classes_find(void *classes, size_t thread, size_t frame, uint32_t *ret_class);

#endif
