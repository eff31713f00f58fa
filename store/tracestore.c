/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A store as other programs and the other folders open it: with the tables of events that SQL asks. */
#include "store/db/store.h"
#include "store/sql/vtab.h"

int tracestore_open(const char *path, enum tracestore_mode mode, struct tracestore **ret_store,
                    struct error *err)
{
    return store_open(path, mode, tracestore_register_vtabs, ret_store, err);
}
