/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "collector/fleet/fleet_tables.h"

/* The store's name in its folder, which nobody else can enter. */
#define STORE_NAME "/run.db"

int fleet_scratch_path(char **ret_path, struct error *err)
{
    const char *folder = getenv("TMPDIR");
    AUTO_FREE char *made = NULL;

    if (asprintf(&made, "%s/tracectl-run.XXXXXX", folder && *folder ? folder : "/tmp") < 0) {
        made = NULL;
        return error_no_memory(err);
    }
    if (!mkdtemp(made))
        return error_set(err, -errno, "set TMPDIR to another folder", "cannot create folder %s", made);
    if (asprintf(ret_path, "%s" STORE_NAME, made) < 0) {
        *ret_path = NULL;
        rmdir(made);
        return error_no_memory(err);
    }
    return 0;
}

void fleet_scratch_remove(char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};

    if (!path)
        return;
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
        AUTO_FREE char *file = NULL;

        if (asprintf(&file, "%s%s", path, suffixes[i]) > 0)
            unlink(file);
    }
    path[strlen(path) - strlen(STORE_NAME)] = '\0';
    rmdir(path);
    free(path);
}
