/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What verifying and salvaging want to know of a segment of process events. */
#ifndef TRACESTORE_PROCESS_CENSUS_H
#define TRACESTORE_PROCESS_CENSUS_H

#include "store/segment/census.h"
#include "store/streams/process_codec.h"

/* Decodes a segment of extent->events events to its last byte. Adds the names of functions or call sites that
 * its events have to `names`, and fills the times of `extent`. -EBADMSG: it is damaged, or there is no such
 * stream; -ENOTSUP, -ENOMEM. */
int process_census_take(struct census *names, int64_t stream, const uint8_t *data, size_t size,
                        struct process_extent *extent);

#endif
