/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A store with random runs, and what must be in it computed naively: the tables x_events and x_calls of the
 * connection, ordinary ones, have the columns of the virtual tables events and calls. A query over either
 * must give the same rows.
 */
#ifndef TRACECTL_TESTS_VTAB_MODEL_H
#define TRACECTL_TESTS_VTAB_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "store/api/tracestore.h"
#include "store/db/sqlite.h"

struct model {
    char path[64];
    struct tracestore *store; /* read only */
    sqlite3 *db;
    uint64_t random;
    uint32_t functions[12]; /* function_ids */
    uint32_t sites[24];     /* site_ids: two in each function, in the order of the functions */
};

struct model_options {
    uint64_t seed;
    int runs, threads;
    int events;              /* of a thread, at most */
    uint64_t segment_events; /* 0: all in one */
    int lost_percent;        /* of events */
    bool times;
    bool unfinished; /* the last run is not ended: its youngest events are in the journal */
};

void model_init(struct model *model, const struct model_options *options);
void model_release(struct model *model);

uint32_t model_random(struct model *model, uint32_t below);

/* All rows of a query, one line each, in memory from malloc; a failure is a row "error: ...". */
char *model_rows(struct model *model, const char *sql);
int64_t model_number(struct model *model, const char *sql);

#endif
