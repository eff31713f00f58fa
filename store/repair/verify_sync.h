/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Checking the segments of synchronisation events, for tracestore_verify. */
#ifndef TRACESTORE_VERIFY_SYNC_H
#define TRACESTORE_VERIFY_SYNC_H

#include "store/api/tracestore.h"
#include "store/db/sqlite.h"

struct sync_verification {
    sqlite3 *db;
    void (*report)(void *context, const struct tracestore_problem *problem); /* NULL: they are only counted */
    void *context;
    int problems;      /* added to */
    uint64_t segments; /* added to */
};

/* Checksums, decoding to the last byte, times, call sites that the catalog does not have, and gaps that no
 * loss tells of. -ENOMEM; what else fails is a problem. */
int verify_sync_segments(struct sync_verification *verification);

#endif
