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

#include "collector/daemon/service_target.h"

struct error;

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

/* NULL: there is none of that name. */
const struct service_target *service_config_find(const struct service_config *config, const char *name);

#endif
