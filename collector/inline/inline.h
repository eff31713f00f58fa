/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The inline backend (backend.h): patches programs (live_patch.h) and hands out the calls that their stubs
 * record (reader.h).
 *
 * A patched process and the children that it forks share one area. What happens to processes and threads is
 * known from the kernel side (bpf/lifecycle.h), and so are calls of functions that have uprobes instead; each
 * of those records says, by the cursor that its thread had, which inline calls come before it.
 *
 * Whatever a thread did with the kernel side before an inline call that was looked at is in the ring by then.
 */
#ifndef TRACECTL_COLLECTOR_INLINE_INLINE_H
#define TRACECTL_COLLECTOR_INLINE_INLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/backend/backend.h"
#include "collector/inline/inline_image.h"

struct error;

struct inline_options {
    size_t ring_bytes; /* of each patched process together with its children; 0: 32 MiB */
    bool timed;        /* each call comes with its own time; needs inline_has_clock() */
    bool by_notes;     /* there is no kernel side: agents tell whose slots are whose */
    bool waits;        /* a thread whose buffer is full waits for the collector, and loses no calls while
                          that lives */
    bool first_only;   /* the children that a patched process forks are not recorded */
    int filtered;      /* then the file, to be mapped, where the kernel side marks at AGENT_ASK which threads
                          may not */
    /* As in struct life_cycle_operations; `context` is the sink's. Where one fails, or is NULL, the process's
     * threads do not wait. */
    int (*number_area)(void *context, uint32_t *ret_area);
    int (*set_area)(void *context, pid_t pid, uint32_t area);
};

/* A backend of the kind that is attached to processes. Those that are patched stay so when it is freed:
 * `detach` comes before. */
int inline_backend_new(const struct inline_options *options, const struct backend_sink *sink,
                       struct backend **ret_backend, struct error *err);

/* Whether the processors' time stamp counters go alike and for ever, as the kernel says. */
bool inline_has_clock(void);

/* Why the process, which runs the image, may not be patched: in `ret_reason` if there is a reason, which
 * lives as long as the program. -ESRCH. */
int inline_refusal(pid_t pid, const struct inline_image *inlined, const char **ret_reason, struct error *err);

/* The part of it that is for limits of memory, which a command has from the process that launches it; NULL:
 * none. */
const char *inline_memory_refusal(pid_t pid, const struct inline_image *inlined);

/* The same for locked memory alone, of a process that could lock all of it. */
const char *inline_lock_refusal(pid_t pid);

/* The file of the agent, which uprobes are to be placed in at AGENT_CLAIM and, with `waits`, AGENT_ASK. */
int inline_agent(const struct backend *backend);

#endif
