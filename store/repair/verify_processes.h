/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Checking the segments of process events, for tracestore_verify. */
#ifndef TRACESTORE_VERIFY_PROCESSES_H
#define TRACESTORE_VERIFY_PROCESSES_H

#include "store/api/tracestore.h"
#include "store/db/sqlite.h"

struct process_verification {
    sqlite3 *db;
    void (*report)(void *context, const struct tracestore_problem *problem); /* NULL: they are only counted */
    void *context;
    int problems;      /* added to */
    uint64_t segments; /* added to */
};

/* Checksums, decoding to the last byte, times, lists of names, names that the catalog does not have, and gaps
 * that no loss tells of. -ENOMEM; what else fails is a problem. */
int verify_process_segments(struct process_verification *verification);

#endif
