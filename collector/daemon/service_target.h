/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A section [target NAME] of the daemon's file: which processes it is about, and how they are recorded. */
#ifndef TRACECTL_COLLECTOR_DAEMON_SERVICE_TARGET_H
#define TRACECTL_COLLECTOR_DAEMON_SERVICE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/flight/flight.h"

struct error;

/* What a process has to be, and how it is recorded. Of the first five those that are not NULL must all hold.
 */
struct service_target {
    char *name;
    char *process;             /* file name of the executable; a glob, as the next two */
    char *path;                /* of the executable */
    char *cgroup;              /* path of the control group, or of one above it */
    char *unit;                /* of systemd, as "nginx.service" */
    char *container;           /* at least the first 12 digits of its id */
    char *user;                /* whose processes: a name or a number; NULL: any */
    int64_t uid;               /* the number, with `user` */
    char *functions, *exclude; /* extended regular expressions; NULL: all, none */
    double budget;             /* 0.05: five percent of the target's CPU time; 0: none */
    uint64_t rotate_ns;        /* a new run begins after this time; UINT64_MAX: never */
    uint64_t flight_ns;        /* only the last of it is kept, for a flight recorder (flight.h); 0: all is */
    uint64_t flight_bytes;     /* that may take; 0: as much as without a word */
    char *flight_on;           /* triggers with blanks between them; NULL: crash */
};

/* Frees what the target points to. */
void service_target_release(struct service_target *target);

/* Whether recordings of the one need not end when it is replaced by the other. Accepts NULL for `a`. */
bool service_target_same(const struct service_target *a, const struct service_target *b);

/* The triggers of a target with flight_ns, which the caller releases one by one and frees. -EINVAL. */
int service_target_triggers(const struct service_target *target, struct flight_trigger **ret_triggers,
                            size_t *ret_count, struct error *err);

#endif
