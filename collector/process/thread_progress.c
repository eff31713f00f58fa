/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/process/thread_progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "collector/process/process.h"

/* So much of a processor's time is more than the way into a short system call and out of it takes. */
#define PASSED_NS 200000u
#define POLL_US 1000

/* Where the kernel does not say how long a thread has run. */
#define UNTOLD_US 10000

/* Whether the thread runs, or would if it had a processor or what the kernel locks. */
static bool is_active(pid_t pid, pid_t tid)
{
    AUTO_FCLOSE FILE *file = NULL;
    char path[64], line[512] = "", state = 0;
    const char *name_end;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    file = fopen(path, "re");
    if (!file || !fgets(line, sizeof(line), file))
        return false;
    name_end = strrchr(line, ')'); /* a name may have any bytes */
    return name_end && sscanf(name_end + 1, " %c", &state) == 1 && (state == 'R' || state == 'D');
}

/* The processor's time that it has had; false: it is gone, or the kernel does not say. */
static bool read_time(pid_t pid, pid_t tid, uint64_t *ret_ns)
{
    AUTO_FCLOSE FILE *file = NULL;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
    file = fopen(path, "re");
    return file && fscanf(file, "%" SCNu64, ret_ns) == 1;
}

static bool has_passed(pid_t pid, pid_t tid, uint64_t begun_ns)
{
    uint64_t now_ns;

    return !is_active(pid, tid) || !read_time(pid, tid, &now_ns) || now_ns - begun_ns > PASSED_NS;
}

bool threads_progress(pid_t pid, uint64_t most_ns)
{
    uint64_t until = clock_ns(CLOCK_MONOTONIC) + most_ns;
    AUTO_FREE uint64_t *begun = NULL;
    AUTO_FREE pid_t *tids = NULL;
    size_t count, waiting = 0;

    if (process_threads(pid, &tids, &count, NULL))
        return true;
    begun = calloc(count + 1, sizeof(*begun));
    if (!begun)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!is_active(pid, tids[i]))
            continue;
        if (!read_time(pid, tids[i], &begun[waiting]))
            return !usleep(UNTOLD_US);
        tids[waiting++] = tids[i];
    }
    for (size_t i = 0; i < waiting; i++)
        while (!has_passed(pid, tids[i], begun[i])) {
            if (clock_ns(CLOCK_MONOTONIC) > until)
                return false;
            usleep(POLL_US);
        }
    return true;
}
