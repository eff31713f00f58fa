/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to image/: what follows from the blocks of a flow graph and their edges. */
#ifndef TRACECTL_IMAGE_FLOW_FLOW_LOOPS_H
#define TRACECTL_IMAGE_FLOW_FLOW_LOOPS_H

#include "image/flow/flow_graph.h"

/* Finds order, dominators and loops of a graph whose blocks are connected. -ENOMEM. */
int flow_loops_find(struct flow_graph *graph);

#endif
