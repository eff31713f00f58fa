/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What `tracectl import --format chrome` reads. A file is refused, and the message says why; or all of
 * it becomes a run.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "store/api/tracestore.h"
#include "store/import/import_chrome.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One for all inputs, in the working directory, which tests/fuzz/run removes. */
static struct tracestore *open_store(void)
{
    static struct tracestore *store;
    char dir[] = "store-XXXXXX", path[sizeof(dir) + 8];

    if (store)
        return store;
    if (!mkdtemp(dir))
        abort();
    snprintf(path, sizeof(path), "%s/db", dir);
    if (tracestore_open(path, TRACESTORE_CREATE, &store, NULL))
        abort();
    return store;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chrome_plan *plan = NULL;
    struct error err = {0};
    int64_t run_id = 0;
    FILE *in = size ? fmemopen((void *)data, size, "r") : NULL;
    int r;

    if (!in)
        return 0;
    r = chrome_plan_read(in, "fuzz.json", &plan, &err);
    fclose(in);
    if (r < 0 && !err.message[0])
        abort();
    if (r < 0)
        return 0;
    if (chrome_plan_write(plan, open_store(), NULL, NULL, &run_id, &err) ||
        tracestore_delete_run(open_store(), run_id, &err))
        abort();
    chrome_plan_free(plan);
    return 0;
}
