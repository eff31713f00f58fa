/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/db/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "store/db/space.h"

/* Set aside: for the few pages that end a run; and for the log, a part of what is free. */
#define RESERVE_PART 4
#define RESERVE_LEAST ((uint64_t)64 << 10)
#define RESERVE_MOST ((uint64_t)8 << 20)

static void limit_log(struct tracestore *store)
{
    uint64_t reserve = store->log_for_reserve ? store->log_for_reserve : UINT64_MAX;
    uint64_t size = store->log_for_size ? store->log_for_size : UINT64_MAX;

    space_limit_log(store->db, reserve < size ? reserve : size);
}

void tracestore_keep_log_short(struct tracestore *store, uint64_t bytes)
{
    store->log_for_size = bytes / 8;
    limit_log(store);
}

void tracestore_reserve(struct tracestore *store)
{
    uint64_t size;

    if (store->reserves[RESERVE_LAST] < 0)
        store->reserves[RESERVE_LAST] =
            space_reserve(store->path, RESERVE_PART, RESERVE_LEAST, RESERVE_LEAST, &size);
    if (store->reserves[RESERVE_LOG] >= 0)
        return;
    store->reserves[RESERVE_LOG] =
        space_reserve(store->path, RESERVE_PART, RESERVE_LEAST, RESERVE_MOST, &size);
    if (store->reserves[RESERVE_LOG] < 0)
        return;
    store->log_for_reserve = size / 2;
    limit_log(store);
}

void reserve_use_for_log(struct tracestore *store)
{
    if (store->reserves[RESERVE_LOG] >= 0)
        close(take_fd(&store->reserves[RESERVE_LOG]));
    space_empty_log(store->db);
}

void tracestore_use_reserve(struct tracestore *store)
{
    uint64_t size;

    reserve_use_for_log(store);
    if (store->reserves[RESERVE_LAST] >= 0)
        close(take_fd(&store->reserves[RESERVE_LAST]));
    /* What is written now goes into the log, and again into the file when the store is closed. */
    store->reserves[RESERVE_LAST] = space_reserve(store->path, 2, 0, RESERVE_MOST, &size);
}

int reserve_cover_log(struct tracestore *store, const char *what, struct error *err)
{
    int fd = store->reserves[RESERVE_LOG] >= 0 ? store->reserves[RESERVE_LOG] : store->reserves[RESERVE_LAST];
    struct stat database, reserve;
    struct space space;
    off_t growth;
    int code;

    if (fd < 0)
        return 0;
    code = space_measure(store->db, &space, err);
    if (code)
        return code;
    if (stat(store->path, &database) || fstat(fd, &reserve))
        return 0;
    growth = (off_t)space.file - database.st_size;
    if (growth > reserve.st_size && fallocate(fd, 0, 0, growth))
        return db_fail_full(store->db, err, what);
    if (reserve.st_size > (off_t)RESERVE_MOST && growth < reserve.st_size) /* an earlier commit needed more */
        return ftruncate(fd, growth > (off_t)RESERVE_MOST ? growth : (off_t)RESERVE_MOST) ? -errno : 0;
    return 0;
}
