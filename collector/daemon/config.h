/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The file of `tracectl daemon`: sections, keys and values as systemd users know them (docs/daemon.md lists
 * them).
 *
 *     [daemon]                 # what holds for all
 *     store = /var/lib/tracectl/store.db
 *     [target web]             # one of these for each thing to record
 *     unit = nginx.service
 */
#ifndef TRACECTL_COLLECTOR_DAEMON_CONFIG_H
#define TRACECTL_COLLECTOR_DAEMON_CONFIG_H

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

struct service_config {
    char *store, *socket;
    uint64_t scan_ns;
    double cpu;                         /* of the recorders together; 0.5: half a processor */
    uint64_t memory_bytes, store_bytes; /* of the recorders together; of the store's files */
    uint64_t max_recordings;            /* at once */
    double budget;                      /* of targets that say nothing else, as the next */
    uint64_t rotate_ns;
    struct service_target *targets;
    size_t target_count, target_capacity;
};

/* Parses `size` bytes of text; `path` is what errors call it: "FILE:LINE: what is wrong (what to do)".
 * -EINVAL, -ENOMEM; then there is nothing to free. */
int service_config_parse(const char *path, const char *text, size_t size, struct service_config *ret_config,
                         struct error *err);

/* The same for a file, which must be less than 1 MiB long, and writable by its owner alone. */
int service_config_read(const char *path, struct service_config *ret_config, struct error *err);

void service_config_release(struct service_config *config);

/* Whether recordings of the one need not end when it is replaced by the other. Accepts NULL for `a`. */
bool service_target_same(const struct service_target *a, const struct service_target *b);

/* The triggers of a target with flight_ns, which the caller releases one by one and frees. -EINVAL. */
int service_target_triggers(const struct service_target *target, struct flight_trigger **ret_triggers,
                            size_t *ret_count, struct error *err);

/* NULL: there is none of that name. */
const struct service_target *service_config_find(const struct service_config *config, const char *name);

#endif
