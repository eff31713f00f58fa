/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/cost/known_costs.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "collector/uprobe/kernel_features.h"

#define NS_AT_MOST 1e7 /* a hit that takes longer was not measured but made up */

/* The file. What must be the same for the costs to be taken, and the costs. */
struct known {
    char program[64];
    struct utsname system; /* the kernel, and the host's name */
    uint64_t measured_ns;  /* CLOCK_BOOTTIME: it cannot be set, and it counts while the machine sleeps */
    uint64_t sessions;
    uint64_t way; /* enum probe_way */
    double recorded_ns[PROBE_COSTS], empty_ns[PROBE_COSTS];
};

static void describe(struct known *known)
{
    memset(known, 0, sizeof(*known));
    snprintf(known->program, sizeof(known->program), "%s", TRACECTL_VERSION);
    uname(&known->system);
    known->way = kernel_probe_way();
    known->measured_ns = clock_ns(CLOCK_BOOTTIME);
}

static bool is_cost(double ns)
{
    return isfinite(ns) && fabs(ns) < NS_AT_MOST;
}

static bool is_fresh(const struct known *known, const struct known *now)
{
    bool sane = true;

    for (int i = 0; i < PROBE_COSTS; i++)
        sane &= is_cost(known->recorded_ns[i]) && is_cost(known->empty_ns[i]);
    return sane && !memcmp(known->program, now->program, sizeof(now->program)) &&
           !memcmp(&known->system, &now->system, sizeof(now->system)) && known->way == now->way &&
           known->measured_ns <= now->measured_ns &&
           now->measured_ns - known->measured_ns < KNOWN_COSTS_MINUTES * 60000000000ull;
}

/* Only what no other user can have written. */
static bool is_ours(int fd)
{
    struct stat file;

    return !fstat(fd, &file) && S_ISREG(file.st_mode) && file.st_uid == geteuid() &&
           !(file.st_mode & (S_IWGRP | S_IWOTH)) && file.st_size == sizeof(struct known);
}

static void name(const char *folder, char *ret_path, size_t size)
{
    snprintf(ret_path, size, "%s/probe-costs", folder);
}

bool known_costs_read(const char *folder, struct probe_costs *ret_costs)
{
    AUTO_CLOSE int fd = -1;
    struct known known, now;
    char path[2048];

    name(folder, path, sizeof(path));
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    describe(&now);
    if (fd < 0 || !is_ours(fd) || read(fd, &known, sizeof(known)) != (ssize_t)sizeof(known) ||
        !is_fresh(&known, &now))
        return false;
    *ret_costs = (struct probe_costs){.loads = true, .delivers = true, .sessions = known.sessions};
    memcpy(ret_costs->recorded_ns, known.recorded_ns, sizeof(ret_costs->recorded_ns));
    memcpy(ret_costs->empty_ns, known.empty_ns, sizeof(ret_costs->empty_ns));
    return true;
}

/* Under another name first: a reader sees all of it or none. */
void known_costs_keep(const char *folder, const struct probe_costs *costs)
{
    char path[2048], draft[2100];
    struct known now;
    bool whole;
    int fd;

    if (mkdir(folder, 0700) && errno != EEXIST)
        return;
    name(folder, path, sizeof(path));
    snprintf(draft, sizeof(draft), "%s.%d", path, (int)getpid());
    fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    describe(&now);
    now.sessions = costs->sessions;
    memcpy(now.recorded_ns, costs->recorded_ns, sizeof(now.recorded_ns));
    memcpy(now.empty_ns, costs->empty_ns, sizeof(now.empty_ns));
    whole = write(fd, &now, sizeof(now)) == (ssize_t)sizeof(now);
    close(fd);
    if (!whole || rename(draft, path))
        unlink(draft);
}

void known_costs(const char *folder, struct probe_costs *ret_costs)
{
    if (known_costs_read(folder, ret_costs))
        return;
    probe_costs_measure(ret_costs);
    if (ret_costs->delivers)
        known_costs_keep(folder, ret_costs);
}
