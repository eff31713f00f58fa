/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The attachment of a budget's uprobes: groups of places, each with a link of its own, so that functions can
 * be excluded and come back while a recording runs.
 *
 * A move makes new links before old ones are closed. Places that stay are in both for a while, and take turns
 * as bpf/budget.h says, so that none of their calls is missed or recorded twice. The return probe of a call
 * that is open meanwhile is lost, since it hangs on the old link: such a return is inferred, and
 * `before_close` hears of the group before its link goes.
 *
 * Nothing here decides: a move says for each function whether it goes, comes or stays. All calls of the
 * backend that change links of programs with a budget are in attachment.c.
 */
#ifndef TRACECTL_COLLECTOR_BUDGET_ATTACHMENT_H
#define TRACECTL_COLLECTOR_BUDGET_ATTACHMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "bpf/wire.h"
#include "collector/backend/backend.h"
#include "collector/images/image_table.h"

/* Places of an image whose probes are one part of the backend's. */
struct probe_group {
    const struct traced_image *image;
    size_t whole; /* places of a group of this image as it was made first; one of less than half is small */
    unsigned part;
    size_t *sites, count; /* indices in the image's offsets and cookies */
    bool dropped;         /* its link is gone, or is being closed */
    /* Before the recording begins: since when it has all its probes, and what the target had used by then. */
    uint64_t complete_ns, cpu_ns;
};

struct attachment {
    struct backend *backend;
    struct budget_slot *slots; /* the kernel side's, by index of probe; borrowed */
    /* The link of a group is about to be closed. It may read records, and so attach new images. Returns 0 or
     * <0. */
    int (*before_close)(void *context, const struct probe_group *group, struct error *err);
    void *context;
    struct probe_group *groups;
    size_t group_count, group_capacity;
    unsigned parts; /* given out so far */
    bool relinking; /* old links may still have hits */
};

enum probe_move {
    PROBE_STAYS,   /* it has a probe, and keeps it */
    PROBE_GOES,    /* its probe goes */
    PROBE_COMES,   /* it gets a probe */
    PROBE_IS_AWAY, /* it has none, and gets none */
};

struct probe_moves {
    const enum probe_move *moves; /* by function; functions from `count` on stay */
    const double *rates; /* the cost of each function: groups that lose the dearest are moved first */
    size_t count;
    /* The images whose functions may come, and `whole` of each. */
    const struct traced_image *const *images;
    const size_t *wholes;
    size_t image_count;
};

void attachment_release(struct attachment *attachment);

/* The number of the function that a place belongs to. */
static inline uint32_t attachment_function(const struct traced_image *image, size_t site)
{
    return image->first_function +
           (uint32_t)image->plan->probes[(uint32_t)image->cookies[site] - image->first_index].function;
}

/* Makes a group of `sites`, which it takes over, and attaches it: its hits count from then on. */
int attachment_add(struct attachment *attachment, const struct traced_image *image, size_t whole,
                   size_t *sites, size_t count, struct error *err);

/* Moves probes. Only functions of `moves->images` come. */
int attachment_move(struct attachment *attachment, const struct probe_moves *moves, struct error *err);

/* All groups from number `first` on, one or more, of one image, become one without the places that `keep`
 * refuses. For the time before anything is recorded. */
int attachment_join(struct attachment *attachment, size_t first,
                    bool (*keep)(const void *context, uint32_t function), const void *context,
                    struct error *err);

/* Closes all links of an image, permanently. */
void attachment_close_image(struct attachment *attachment, const struct traced_image *image);

/* Ends the time in which old links may still have hits, when the kernel has closed them all. */
void attachment_poll(struct attachment *attachment);

#endif
