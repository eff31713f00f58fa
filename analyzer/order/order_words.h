/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an ordered tree says, in words: who is behind, and where the others wait. */
#ifndef TRACECTL_ANALYZER_ORDER_ORDER_WORDS_H
#define TRACECTL_ANALYZER_ORDER_ORDER_WORDS_H

#include "analyzer/order/order_tree.h"

/* One or more sentences, without a line break at the end: "rank 8 is behind: 31 ranks are in MPI_Allreduce
 * (iteration 12), rank 8 is in get_norm (iteration 11)", or why there is no order. The caller frees
 * *ret_words. -ENOMEM. */
int order_words(const struct order_tree *order, char **ret_words);

/* "poisson@poisson.c:142", "poisson+0x1c" where the line is not known; the name of the image where no
 * function is. The caller frees *ret_label. -ENOMEM. */
int order_words_place(const struct order_tree *order, const struct sample_place *place, char **ret_label);

/* "iteration 12 (it = 11)", or "" where none is known. The caller frees *ret_words. -ENOMEM. */
int order_words_iteration(const struct order_tree *order, uint32_t node, char **ret_words);

/* The function that the threads of a node are in as seen from there: the one that the point of the node has
 * called, or its own where it has called none. "" when nobody knows its name. */
const char *order_words_function(const struct order_tree *order, uint32_t node);

#endif
