/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A dendrogram as text: a line for each leaf, and between them a line for each merge, with its distance. */
#ifndef TRACECTL_CLI_CLUSTER_DENDROGRAM_TEXT_H
#define TRACECTL_CLI_CLUSTER_DENDROGRAM_TEXT_H

#include <stdbool.h>

#include "analyzer/cluster/dendrogram.h"

/* Prints on stdout, in lines of up to `width` columns (the names of the leaves have at least 8 and the tree
 * 20). `names` are those of the objects; a leaf has as many as fit, and their number. `ascii`: without the
 * characters for lines that UTF-8 has. -ENOMEM. */
int dendrogram_print(const struct dendrogram *dendrogram, const char *const *names, size_t width, bool ascii);

#endif
