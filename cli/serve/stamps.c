/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/serve/stamps.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/fnv.h"
#include "cli/common/output.h"

struct stamps {
    pthread_mutex_t lock;
    char *path;
    struct tracestore *store; /* NULL: it could not be opened again */
    struct stat file;         /* that is open */
    uint64_t opened;          /* how often */
};

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return fnv_add(hash, &value, sizeof(value));
}

static int reopen(struct stamps *stamps, struct error *err)
{
    tracestore_free(stamps->store);
    stamps->store = NULL;
    stamps->opened++;
    if (stat(stamps->path, &stamps->file) < 0)
        memset(&stamps->file, 0, sizeof(stamps->file));
    return tracestore_open(stamps->path, TRACESTORE_READ, &stamps->store, err);
}

int stamps_new(const char *store, struct stamps **ret_stamps, struct error *err)
{
    struct stamps *stamps = calloc(1, sizeof(*stamps));
    int r;

    if (!stamps || !(stamps->path = strdup(store))) {
        free(stamps);
        return error_no_memory(err);
    }
    pthread_mutex_init(&stamps->lock, NULL);
    r = reopen(stamps, err);
    if (r < 0) {
        stamps_free(stamps);
        return r;
    }
    *ret_stamps = stamps;
    return 0;
}

void stamps_free(struct stamps *stamps)
{
    if (!stamps)
        return;
    tracestore_free(stamps->store);
    pthread_mutex_destroy(&stamps->lock);
    free(stamps->path);
    free(stamps);
}

/* With the lock held, as all below. */
static void check_file(struct stamps *stamps)
{
    struct error err = {0};
    struct stat now;

    if (!stamps->store || stat(stamps->path, &now) < 0 || now.st_ino != stamps->file.st_ino ||
        now.st_dev != stamps->file.st_dev)
        reopen(stamps, &err); /* what is wrong is what the answers say */
}

static uint64_t of_store(struct stamps *stamps)
{
    AUTO_STATEMENT *statement = NULL;
    uint64_t hash = mix(FNV_START, stamps->opened);
    struct error err = {0};

    if (!stamps->store || cli_prepare(stamps->store, &statement, &err, "PRAGMA data_version", 0) < 0 ||
        sqlite3_step(statement) != SQLITE_ROW)
        return hash;
    return mix(hash, (uint64_t)sqlite3_column_int64(statement, 0));
}

/* Of an ended run; false: it has not ended, or there is none. */
static bool of_run(struct stamps *stamps, int64_t run, uint64_t *hash)
{
    AUTO_STATEMENT *statement = NULL;
    struct error err = {0};

    if (!stamps->store ||
        cli_prepare(stamps->store, &statement, &err,
                    "SELECT started_ns, ended_ns FROM runs WHERE run_id = ? AND ended_ns IS NOT NULL", 1,
                    run) < 0 ||
        sqlite3_step(statement) != SQLITE_ROW)
        return false;
    *hash = mix(mix(mix(*hash, (uint64_t)run), (uint64_t)sqlite3_column_int64(statement, 0)),
                (uint64_t)sqlite3_column_int64(statement, 1));
    return true;
}

uint64_t stamps_store(struct stamps *stamps)
{
    uint64_t hash;

    pthread_mutex_lock(&stamps->lock);
    check_file(stamps);
    hash = of_store(stamps);
    pthread_mutex_unlock(&stamps->lock);
    return hash;
}

uint64_t stamps_runs(struct stamps *stamps, const int64_t *runs, int count)
{
    uint64_t hash = FNV_START;
    bool ended = count > 0;

    pthread_mutex_lock(&stamps->lock);
    check_file(stamps);
    hash = mix(hash, stamps->opened);
    for (int i = 0; i < count && ended; i++)
        ended = of_run(stamps, runs[i], &hash);
    if (!ended)
        hash = of_store(stamps);
    pthread_mutex_unlock(&stamps->lock);
    return hash;
}
