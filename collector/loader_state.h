/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to the loader: loader.c brings probes, loader_rewrite.c takes those of an image away. */
#ifndef TRACECTL_COLLECTOR_LOADER_STATE_H
#define TRACECTL_COLLECTOR_LOADER_STATE_H

#include <uthash.h>

#include "collector/linkers.h"
#include "collector/loader.h"

/* The probes of an image, or the one on a dynamic linker, in one process. */
struct attachment {
    uint64_t key;               /* key_of() */
    struct traced_image *image; /* NULL: a linker */
    pid_t pid;
    UT_hash_handle hh;
};

struct loader {
    struct image_table *images;
    struct uprobe_backend *backend;
    struct inline_backend *inlined; /* NULL: there are no inline probes */
    struct streams *streams;
    struct sync_probes *sync; /* NULL: none */
    struct trigger *trigger;  /* NULL: none */
    struct budget *budget;    /* NULL: none */
    bool libraries, skipped, unpatched, differing, discreet;
    struct attachment *attachments;
    struct linkers linkers;
};

/* Takes all probes of an image away, from all processes and for good, and waits until `pid`, which stands
 * still, has none; or makes sure that it gets none. -ENOMEM. */
int loader_leave(struct loader *loader, struct traced_image *image, pid_t pid, const char *why,
                 struct error *err);

/* A process begins to run other programs from copies of their code, and stands still: makes sure that nothing
 * that it may map has a breakpoint. -ENOMEM. */
int loader_translator(struct loader *loader, pid_t pid, struct error *err);

#endif
