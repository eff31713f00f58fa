/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The probes of a recording on functions that synchronise: in the C library of each traced process, by
 * itself, since every process on the machine maps it; in the program, where it has a C library of its own
 * (static programs) or functions that the user has declared, in all processes that run it.
 */
#ifndef TRACECTL_COLLECTOR_SYNC_PROBES_H
#define TRACECTL_COLLECTOR_SYNC_PROBES_H

#include <stdbool.h>
#include <sys/types.h>

#include "collector/images/image_table.h"
#include "collector/stream/streams.h"
#include "collector/sync/functions.h"
#include "collector/uprobe/uprobe.h"

struct sync_probes;

/* `declarations` live as long as the probes; the number of each is its place in the list, from 1. Tells the
 * kernel side which system calls are recorded. */
int sync_probes_new(struct uprobe_backend *backend, struct streams *streams,
                    const struct sync_declaration *declarations, size_t count,
                    struct sync_probes **ret_probes, struct error *err);
void sync_probes_free(struct sync_probes *probes); /* accepts NULL */

/* What has become of a process by a look at its code. */
struct sync_survey {
    bool updates; /* there are probes now that were not there before */
    bool own;     /* it has probes that its children must be given as well */
    bool skipped; /* too many processes have them already: this one's locks are not seen */
};

/* A process has `image` mapped; `path` opens it. What the answer says is added to `survey`. */
int sync_probes_image(struct sync_probes *probes, struct traced_image *image, pid_t pid,
                      struct sync_survey *survey, struct error *err);

/* A process has a child that runs the same code. */
int sync_probes_fork(struct sync_probes *probes, pid_t parent, pid_t child, struct sync_survey *survey,
                     struct error *err);

/* A process has ended; the links are the backend's to close. */
void sync_probes_end(struct sync_probes *probes, pid_t pid);

#endif
