/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A store as other programs and the other folders open it: with the tables of events that SQL asks. */
#include <errno.h>

#include "store/store.h"
#include "store/vtab.h"

int tracestore_open(const char *path, enum tracestore_mode mode, struct tracestore **ret_store,
                    struct error *err)
{
    struct tracestore *store;
    char *message = NULL;
    int code = store_open(path, mode, &store, err);

    if (code)
        return code;
    /* The views are temporary, and still something that query_only forbids to make. */
    if (sqlite3_exec(store->db, "PRAGMA query_only = OFF", NULL, NULL, &message) == SQLITE_OK &&
        tracestore_register_vtabs(store->db, &message) == SQLITE_OK &&
        (mode != TRACESTORE_READ ||
         sqlite3_exec(store->db, "PRAGMA query_only = ON", NULL, NULL, &message) == SQLITE_OK)) {
        *ret_store = store;
        return 0;
    }
    code = error_say(err, -EIO, "cannot open store %s: its tables of events cannot be made: %s", path,
                     message ? message : sqlite3_errmsg(store->db));
    sqlite3_free(message);
    tracestore_free(store);
    return code;
}
