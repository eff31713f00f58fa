/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to collector/uprobe/: the BPF programs of a recording, once loaded, and what they share with it.
 * uprobe.c loads them, uprobe_calls.c and bpf_life_cycle.c are the two tables of functions that they stand
 * behind. */
#ifndef TRACECTL_COLLECTOR_UPROBE_UPROBE_STATE_H
#define TRACECTL_COLLECTOR_UPROBE_UPROBE_STATE_H

#include <stddef.h>

#include "bpf/wire.h" /* the skeleton has its types in arrays */

#include "bpf/tracectl.skel.h"
#include "collector/launch/exec_guard.h"
#include "collector/uprobe/kernel_features.h"
#include "collector/uprobe/probe_links.h"
#include "collector/uprobe/ring_reader.h"
#include "collector/uprobe/uprobe.h"

struct uprobe_backend {
    struct backend calls;
    struct life_cycle_source life_cycle;
    struct tracectl_bpf *skeleton;
    struct ring_reader ring;
    struct budget_slot *counts; /* NULL: there are none */
    bool returns;               /* are probed, by sessions */
    uint32_t last_area;         /* the number that was given last */
    struct probe_links links;
    struct exec_guard guard;
};

extern const struct backend_operations uprobe_calls_operations;
extern const struct life_cycle_operations bpf_life_cycle_operations;

static inline struct uprobe_backend *uprobe_of_calls(const struct backend *calls)
{
    return (struct uprobe_backend *)((const char *)calls - offsetof(struct uprobe_backend, calls));
}

static inline struct uprobe_backend *uprobe_of_life_cycle(const struct life_cycle_source *source)
{
    return (struct uprobe_backend *)((const char *)source - offsetof(struct uprobe_backend, life_cycle));
}

/* Attaches a program at all sites, or at none; those that the kernel refuses are marked and left out. */
int uprobe_attach(struct uprobe_backend *backend, const struct bpf_program *program,
                  enum probe_purpose purpose, const struct probe_sites *sites, pid_t pid, struct error *err);

#endif
