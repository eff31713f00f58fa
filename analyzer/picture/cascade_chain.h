/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Predicted cascades as a picture: a column a thread, from the source at the top to the sink at the bottom.
 */
#ifndef TRACECTL_ANALYZER_PICTURE_CASCADE_CHAIN_H
#define TRACECTL_ANALYZER_PICTURE_CASCADE_CHAIN_H

#include "analyzer/cascade/cascade.h"

/* The most severe ones that are drawn. */
enum { CASCADE_MOST_DRAWN = 10 };

/* A document of its own, from malloc; NULL: no memory. */
char *cascade_chain_svg(const struct cascade_result *result, const char *sink);

#endif
