/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The BPF programs of a recording: loads them, and is a backend (backend.h) and a life-cycle source
 * (life_cycle_source.h) in one, since calls and updates of processes come through one ring. Beside these two
 * tables it has what only the kernel's probes can do: goroutines and synchronisation.
 *
 * Nothing is pinned: when the process that holds the backend dies, however it dies, the kernel removes every
 * probe with its last file descriptor.
 */
#ifndef TRACECTL_COLLECTOR_UPROBE_UPROBE_H
#define TRACECTL_COLLECTOR_UPROBE_UPROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire.h"
#include "collector/backend/backend.h"
#include "collector/backend/life_cycle_source.h"

struct error;

struct uprobe_backend;

struct uprobe_options {
    size_t ring_bytes;     /* a power of two of at least a page; 0: the default, 32 MiB */
    bool with_time;        /* stamp records: 41 ns each, so only as often as --time anchor needs */
    bool full_time;        /* stamp every record */
    bool follow_children;  /* trace the processes that traced processes make */
    bool can_continue_all; /* this process may send SIGCONT to processes of other users, which can be held
                              then */
    bool goroutines;       /* uprobe_backend_attach_go will be called */
    bool follows_schedule; /* and uprobe_backend_set_schedule */
    bool sync;    /* record system calls that synchronise; uprobe_backend_attach_sync will be called */
    bool inlined; /* processes have inline probes */
    bool asked;   /* and their threads ask whether they may wait */
    bool returns; /* cookies without COOKIE_ENTRY_ONLY will ask for return probes; else there are none */
    uint32_t budget_ns; /* what calls may cost on each CPU in a tick of the kernel's; 0: as much as they do */
    uint32_t trigger_share; /* of 2^32 - 1: of the windows that triggers open; 0: there are none */
    bool count_only;        /* with a budget: calls are counted in its slots, and none is recorded */
    bool packed;  /* calls and returns of a thread go packed through the ring, where nothing speaks against it
                   */
    bool no_hold; /* stop no process at exec or fork: a parent could see it */
};

/* Loads the programs and attaches the life-cycle tracepoints; no probe yet. -EPERM without the capabilities,
 * -EOPNOTSUPP on a kernel that cannot place them, or has no sessions for `returns`. */
int uprobe_backend_open(const struct uprobe_options *options, struct uprobe_backend **ret_backend,
                        struct error *err);

/* Detaches everything. Accepts NULL. */
void uprobe_backend_free(struct uprobe_backend *backend);

/* The two tables of functions that the loaded programs stand behind; they live as long as the backend. */
struct backend *uprobe_calls(struct uprobe_backend *backend);
struct life_cycle_source *uprobe_life_cycle(struct uprobe_backend *backend);

/* ---- goroutines */

/* What is to be probed of a Go program for its goroutines: the cookies are indexes of `probes`. */
struct uprobe_go {
    struct probe_sites sites;
    const struct go_probe *probes; /* as many as sites */
    uint32_t program;              /* number in the map of layouts */
    struct go_fields fields;
};

/* Probes it in every process that runs it; sites.part is not 0. */
int uprobe_backend_attach_go(struct uprobe_backend *backend, const struct uprobe_go *go, struct error *err);

/* Which threads to hold up from now on, of the processes of a worker (below GO_WORKERS_MAX): none of before
 * is affected. `holder`: the process that the targets are traced by. */
void uprobe_backend_set_schedule(struct uprobe_backend *backend, unsigned worker,
                                 const struct go_schedule *schedule, pid_t holder);
/* How often the place of probe `index` was hit in the worker's `execution`. */
uint32_t uprobe_backend_hits(const struct uprobe_backend *backend, uint32_t index, unsigned worker,
                             uint32_t execution);

/* ---- synchronisation */

/* Probes functions that synchronise, whose cookies are those of struct wire_sync (bpf/wire.h), as
 * backend_operations.attach_sites does. */
int uprobe_backend_attach_sync(struct uprobe_backend *backend, const struct probe_sites *sites, pid_t pid,
                               struct error *err);

/* What is recorded of a system call. */
int uprobe_backend_sync_call(struct uprobe_backend *backend, uint32_t number, const struct sync_call *call,
                             struct error *err);

#endif
